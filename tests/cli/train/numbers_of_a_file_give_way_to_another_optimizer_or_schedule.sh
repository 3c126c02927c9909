# What another program's file says of its optimizer or schedule gives way, with a notice, to a flag that chooses one without it.
config() { train "$@" --print-config 2> told | tr -d '"' > config.yaml; }
lacks() { if grep "^$1:" config.yaml; then exit 1; fi; }
cat > ds.json << 'END'
{
  "optimizer": {"type": "AdamW", "params": {"lr": 2e-3, "betas": [0.9, 0.95], "eps": 1e-6}},
  "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_num_steps": 2, "warmup_type": "linear", "total_num_steps": 3}}
}
END
config --deepspeed ds.json --optimizer lion
grep -qx 'optimizer: lion' config.yaml
grep -qx 'beta2: 0.95' config.yaml
lacks adam-eps
grep -q 'ds.json line 2, optimizer.params.eps: --optimizer overrides it' told
config --deepspeed ds.json --schedule one-cycle
lacks min-lr-ratio
grep -q 'scheduler.type: --schedule overrides it' told
config --deepspeed ds.json --optimizer adamw8bit
grep -qx 'adam-eps: 1e-06' config.yaml

printf 'base_model: .\nmicro_batch_size: 2\nlearning_rate: 1e-3\nadam_epsilon: 1e-6\n' > axolotl.yaml
config --config axolotl.yaml --optimizer lion
lacks adam-eps
grep -q 'axolotl.yaml line 4, adam_epsilon: --optimizer overrides it' told

# What a file's optimizer or schedule means goes with it; what the file says counts on.
printf 'base_model: .\nmicro_batch_size: 2\nlearning_rate: 1e-3\noptimizer: sgd\nlr_scheduler: constant\nwarmup_ratio: 0.2\n' \
  > axolotl.yaml
printf 'lora: {optim: sgd, lr_scheduler_type: constant, warmup_ratio: 0.2}\n' > lora.yaml
for file in axolotl.yaml lora.yaml; do
  config --config $file
  grep -qx 'beta1: 0' config.yaml
  grep -qx 'warmup: 0' config.yaml
  config --config $file --optimizer adamw --schedule cosine
  grep -qx 'beta1: 0.9' config.yaml
  grep -qx 'warmup-ratio: 0.2' config.yaml
  lacks warmup
  if grep 'no warm-up' told; then exit 1; fi
done
printf 'optimizer: {_component_: torch.optim.SGD, lr: 0.1}\n' > torchtune.yaml
config --config torchtune.yaml --optimizer adamw
grep -qx 'beta1: 0.9' config.yaml
grep -qx 'weight-decay: 0.01' config.yaml
echo '{"optimizer": {"type": "SGD", "params": {"lr": 1e-4, "momentum": 0.5, "nesterov": true}}}' > sgd.json
config --deepspeed sgd.json
grep -qx 'beta1: 0.5' config.yaml
config --deepspeed sgd.json --optimizer adamw
if grep -e '^beta1: 0.5' -e '^optimizer-option:.*nesterov' config.yaml; then exit 1; fi
grep -q 'sgd.json line 1, optimizer.params.nesterov: --optimizer overrides it' told

# Such a run begins.
seq 40 | pretokenize -q | pack -q --chunk 64 -o data
cat > tiny.json << 'END'
{"model_type": "llama", "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
 "num_key_value_heads": 1, "vocab_size": 272, "max_position_embeddings": 256}
END
train -q --data data --model tiny.json --seq 32 --device cpu --threads 1 --mixed-precision no --deepspeed ds.json \
  --optimizer lion --explain > /dev/null
train -q --data data --model tiny.json --seq 32 --device cpu --threads 1 --mixed-precision no --deepspeed sgd.json \
  --optimizer adamw --explain > /dev/null
