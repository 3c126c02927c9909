# --config takes the LoRA trainer's YAML: keys renamed, its defaults behind, the rest told or refused.
value() { grep "^$1: " | sed 's/^[^:]*: //; s/"//g'; }
cat > lora.yaml << 'END'
api_models:
  - {name: a, api_url: "http://nowhere", model: m, api_key_env: KEY}
dataset: {batch_size: 10, base_topics: {a: [b]}}
lora:
  model_id: base
  lora_r: 8
  lora_alpha: 24
  target_modules: [q_proj, v_proj]
  use_4bit: false
  num_epochs: 4
  batch_size: 4
  learning_rate: 4e-4
  logging_steps: 5
  eval_steps: 20
  save_steps: 100
  save_total_limit: 1
  lr_scheduler_type: cosine
  warmup_ratio: 0.03
  gradient_clip_norm: 0.5
  fp16_opt_level: O2
  hf_token: hf_secret
  dataset_path: null
inference: {max_tokens: 256}
END
train --config lora.yaml --print-config > a.yaml 2> notices
while read -r key wanted; do
  got=$(value "$key" < a.yaml)
  [[ $got == "$wanted" ]] || { echo "$key is '$got', not '$wanted'"; exit 1; }
done << 'END'
init base
lora 8
lora-alpha 24
lora-dropout 0.05
lora-targets q_proj,v_proj
quant none
epochs 4
batch 4
accum 8
lr 4e-4
log-every 5
eval-every 20
save-every 100
keep 1
schedule cosine
warmup-ratio 0.03
clip 0.5
loss-on all
mixed-precision bf16
END
for told in gradient_clip_norm fp16_opt_level hf_token "'inference'" "'api_models'"; do
  grep -q "$told" notices || { echo "no notice of $told"; exit 1; }
done
if grep -q hf_secret notices a.yaml; then echo "the token is shown"; exit 1; fi
train --config lora.yaml --lora 4 --print-config 2> /dev/null | grep -qx 'lora: "4"'

refused() { # refused TEXT: the file bad.yaml is a usage error that says it
  fails 2 "$1" train --config bad.yaml --print-config
}
printf 'lora: {lora_rr: 8}\n' > bad.yaml && refused "did you mean 'lora_r'"
printf 'lora: {lr_scheduler_type: polynomial}\n' > bad.yaml && refused "'polynomial' is not one of"
printf 'lora: {max_grad_norm: 1, gradient_clip_norm: 2}\n' > bad.yaml && refused 'of the same'
printf 'lora: {lora_r: eight}\n' > bad.yaml && refused "'eight'"
printf 'lora: {lora_r: 8, lora_r: 9}\n' > bad.yaml && refused 'twice'
printf 'models: {a: 1}\n' > bad.yaml && refused "key 'models' must be a single value"

# A file of nothing but its section trains, on text too.
seq 2000 > text
pretokenize text 2> /dev/null | pack --chunk 256 -o shards 2> /dev/null
cat > tiny.json << 'END'
{"model_type": "llama", "vocab_size": 512, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1,
 "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 256, "rms_norm_eps": 1e-5,
 "rope_theta": 10000, "tie_word_embeddings": true, "hidden_act": "silu"}
END
printf 'lora: {lora_r: 4, max_seq_length: 16, output_dir: run}\n' > short.yaml
train --config short.yaml --data shards --model tiny.json --steps 3 --threads 1 2> log
grep -q '"r": 4' run/latest/adapter_config.json
