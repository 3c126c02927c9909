# --config takes the YAML of axolotl and of torchtune recipes: keys become options, flags go before them, the program's
# defaults stand behind --preset, what has no effect is told, and what cannot be done is refused by name and line.
value() { grep "^$1: " | sed 's/^[^:]*: //; s/"//g'; }
expect() { # expect KEY VALUE ARGUMENT...
  local key=$1 wanted=$2 got
  shift 2
  got=$(train --print-config "$@" 2> /dev/null | value "$key")
  [[ $got == "$wanted" ]] || { echo "$*: $key is '$got', not '$wanted'"; exit 1; }
}
refused() { # refused TEXT ARGUMENT...: a usage error that says it
  fails 2 "$1" train --print-config "${@:2}"
}
cat > axolotl.yaml << 'END'
base_model: base/latest     # a folder
model_type: AutoModelForCausalLM
load_in_8bit: false
load_in_4bit: true
adapter: qlora
lora_r: 4
lora_alpha: 8
lora_dropout: 0
lora_target_modules: [q_proj, v_proj, down_proj]
datasets:
  - path: questions.jsonl
    type: completion
dataset_prepared_path:
val_set_size: 0
sequence_len: 16
sample_packing: true
micro_batch_size: 2
gradient_accumulation_steps: 2
num_epochs: 1
max_steps: 2
optimizer: adamw_torch
lr_scheduler: cosine
learning_rate: 2e-3
warmup_steps: 1
bf16: false
fp16: false
gradient_checkpointing: true
logging_steps: 1
saves_per_epoch: 4
wandb_project: secret
output_dir: ax
END
cat > torchtune.yaml << 'END'
output_dir: tt
model:
  _component_: torchtune.models.llama3_2.lora_llama3_2_1b
  lora_attn_modules: ['q_proj', 'output_proj']
  apply_lora_to_mlp: False
  lora_rank: 2
  lora_alpha: 4
tokenizer: {_component_: torchtune.models.llama3.llama3_tokenizer, max_seq_len: 16}
checkpointer:
  _component_: torchtune.training.FullModelHFCheckpointer
  checkpoint_dir: base/latest
  output_dir: ${output_dir}
dataset: {_component_: torchtune.datasets.text_completion_dataset, packed: True}
seed: null
batch_size: 2
gradient_accumulation_steps: 1
epochs: 1
max_steps_per_epoch: 2
optimizer: {_component_: torch.optim.AdamW, fused: True, lr: 3e-4}
lr_scheduler:
  _component_: torchtune.training.lr_schedulers.get_cosine_schedule_with_warmup
  num_warmup_steps: 1
loss: {_component_: torchtune.modules.loss.LinearCrossEntropyLoss}
clip_grad_norm: null
dtype: fp32
device: cpu
enable_activation_checkpointing: False
metric_logger: {_component_: torchtune.training.metric_logging.DiskLogger, log_dir: '${output_dir}/logs'}
log_every_n_steps: 1
END
for pair in init=base/latest lora=4 lora-alpha=8 quant=nf4 lora-targets=q_proj,v_proj,down_proj seq=16 packing=on batch=2 \
            accum=2 steps=2 optimizer=adamw schedule=cosine lr=2e-3 warmup=1 mixed-precision=no log-every=1 out=ax \
            checkpoint-activations=full min-lr-ratio=0 beta2=0.999 weight-decay=0 clip=1 seed=42 save-every=epoch; do
  expect "${pair%%=*}" "${pair#*=}" --config axolotl.yaml
done
for pair in init=base/latest lora=2 lora-alpha=4 lora-targets=q_proj,o_proj seq=16 packing=on batch=2 accum=1 steps=2 \
            optimizer=adamw schedule=cosine lr=3e-4 warmup=1 mixed-precision=no checkpoint-activations=no out=tt \
            min-lr-ratio=0 weight-decay=0.01 clip=0; do
  expect "${pair%%=*}" "${pair#*=}" --config torchtune.yaml
done
mkdir -p base/latest
train --config axolotl.yaml --print-config > /dev/null 2> notices
grep -q "key 'datasets': data is read from shards.*--records lm.*--chunk 16" notices
grep -q "key 'saves_per_epoch': has no effect here: give --save-every" notices
grep -q 'without effect here: model_type, wandb_project$' notices || { cat notices; exit 1; }
if grep -q -e secret -e base_model notices; then cat notices; exit 1; fi
rmdir base/latest base
train --config axolotl.yaml --print-config 2>&1 > /dev/null | grep -q "there is no folder 'base/latest'.*give --init DIR"

# What goes before what.
expect lr 1 --config axolotl.yaml --lr 1
TRAINWRIGHT_BATCH=3 expect batch 3 --config torchtune.yaml
test -z "$(train --config axolotl.yaml --epochs 1 --print-config 2> /dev/null | value steps)"
test -z "$(train --config torchtune.yaml --warmup-ratio 0.1 --print-config 2> /dev/null | value warmup)"
expect workers 4 --config torchtune.yaml --preset rft-fast
expect weight-decay 0 --config torchtune.yaml --preset rft-fast
expect lr 3e-4 --config torchtune.yaml --preset rft-fast

sed 's/adamw_torch/adamw_bnb_8bit/' axolotl.yaml > eight.yaml
expect optimizer adamw8bit --config eight.yaml
sed 's/adamw_torch/lion_8bit/' axolotl.yaml > lion.yaml
refused "lion.yaml: key 'optimizer' is 'lion_8bit': there is no such optimizer (line 21)" --config lion.yaml
expect optimizer adamw --config lion.yaml --optimizer adamw
expect optimizer sgd --config axolotl.yaml --optimizer sgd
test "$(train --config axolotl.yaml --print-config 2> /dev/null | value beta2)" = 0.999
test "$(train --config axolotl.yaml --optimizer sgd --print-config 2> /dev/null | value beta2)" != 0.999
sed 's/^lora_r:/rl: dpo\n&/' axolotl.yaml > dpo.yaml && refused "dpo.yaml: key 'rl' asks for.*(line 6)" --config dpo.yaml
sed 's/^lora_r:/lora_rr:/' axolotl.yaml > slip.yaml && refused "key 'lora_rr' is none that is read here (line 6)" --config slip.yaml
grep -q "did you mean 'lora_r'" err
sed 's/lora_rank/lora_rnk/' torchtune.yaml > slip.yaml && refused "key 'model.lora_rnk'.*(line 6)" --config slip.yaml
sed 's/\${output_dir}$/${outputs}/' torchtune.yaml > lost.yaml
refused "key 'checkpointer.output_dir' refers to \${outputs}" --config lost.yaml
sed 's/^loss: .*/loss: {_component_: torchtune.rlhf.loss.DPOLoss}/' torchtune.yaml > dpo.yaml
refused "key 'loss._component_' is torchtune.rlhf.loss.DPOLoss" --config dpo.yaml
printf 'base_model: x\nadapter: &a lora\n' > anchor.yaml && refused 'anchor.yaml: holds an anchor (&name) (line 2)' --config anchor.yaml
sed 's/^output_dir: .*/output_dir: "a\\0b"/' axolotl.yaml > nul.yaml && refused 'nul.yaml line 31, output_dir: holds a NUL' --config nul.yaml
printf 'out: "a\\0b"\n' > nul.yaml && refused "key 'out' in line 1: holds a NUL" --config nul.yaml
(cat axolotl.yaml; echo 'seed: 1'; echo 'seed: 2') > twice.yaml
refused "twice.yaml: key 'seed' is given twice (line 33)" --config twice.yaml
grep -q 'hint: line 32 has it, too: leave one of the two out' err
# A file of ours stays one.
printf 'lr: 1e-3\nlora: 8\n' > ours.yaml
expect lora 8 --config ours.yaml
test -z "$(train --config ours.yaml --print-config 2> /dev/null | value beta2)"

# Both train.
seq 2000 > text
pretokenize text 2> /dev/null | pack --chunk 256 -o shards 2> /dev/null
cat > tiny.json << 'END'
{"model_type": "llama", "vocab_size": 512, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1,
 "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 256, "rms_norm_eps": 1e-5,
 "rope_theta": 10000, "tie_word_embeddings": true, "hidden_act": "silu"}
END
train --data shards --model tiny.json --seq 16 --steps 1 --threads 1 --out base 2> log || { cat log; exit 1; }
for name in axolotl torchtune; do
  train --config $name.yaml --data shards --threads 1 --summary $name.json 2> log || { cat log; exit 1; }
  test "$(grep -c 'without effect here' log)" = 1 || { cat log; exit 1; }
done
grep -q '"r": 4' ax/latest/adapter_config.json
grep -q '"r": 2' tt/latest/adapter_config.json
train --config axolotl.yaml --data shards --explain 2> /dev/null | grep -qE '^lr +0.002 +config +axolotl.yaml line 23, learning_rate'
train --resume --out ax --steps 3 --replan-schedule 2> log || { cat log; exit 1; }  # without the file
grep -q '"steps": *3' ax/complete.json
# What a run refuses is placed in the file that asked for it, whosever the file is.
(cat axolotl.yaml; echo 'load_best_model_at_end: true') > best.yaml
fails 2 '--keep-best: needs data to evaluate on (best.yaml line 32, load_best_model_at_end)' \
  train --config best.yaml --data shards --out best
printf 'keep-best: 1\ndata: shards\nout: best\n' > ours.yaml
fails 2 '--keep-best: needs data to evaluate on (ours.yaml line 1)' train --config ours.yaml --model tiny.json
# What is said of the length is what counts: the file's, or what overrides it.
notices() { train "$@" --print-config 2>&1 > /dev/null; }
notices --config torchtune.yaml > notices
grep -q "key 'max_steps_per_epoch': times epochs" notices
notices --config axolotl.yaml > notices
grep -q "key 'num_epochs': max_steps overrides it" notices
for file in torchtune axolotl; do
  notices --config $file.yaml --epochs 3 > notices
  grep -q "$file.yaml line [0-9]*, max_steps.*: --epochs overrides it" notices
  test -z "$(grep -e 'times epochs' -e 'max_steps overrides' notices)"
  notices --config $file.yaml --steps 3 > notices
  test -z "$(grep -e 'times epochs' -e 'overrides it' notices)"
done
