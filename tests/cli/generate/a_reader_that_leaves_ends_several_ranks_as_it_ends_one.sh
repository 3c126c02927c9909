# Ranks whose reader went away end with the status that SIGPIPE gives one process, and as silently.
set +o pipefail
seq 400 > text
pretokenize -q text | pack -q --chunk 64 -o shards/
cat > tiny.json << 'JSON'
{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 258, "hidden_size": 64, "intermediate_size": 128,
 "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 128}
JSON
train -q --data shards --model tiny.json --steps 2 --batch 1 --seq 64 --threads 1 --out run > train.log
for ranks in 1 2; do
  generate -q --checkpoint run --prompt 'to be' --max-tokens 4 --batch-invariant --threads 1 --nproc $ranks 2> err | true
  echo "${PIPESTATUS[0]}"
  cat err
done
