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

# Such a run begins.
seq 40 | pretokenize -q | pack -q --chunk 64 -o data
cat > tiny.json << 'END'
{"model_type": "llama", "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
 "num_key_value_heads": 1, "vocab_size": 272, "max_position_embeddings": 256}
END
train -q --data data --model tiny.json --seq 32 --device cpu --threads 1 --mixed-precision no --deepspeed ds.json \
  --optimizer lion --explain > /dev/null
