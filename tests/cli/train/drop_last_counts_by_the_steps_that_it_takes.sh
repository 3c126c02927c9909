# Epochs of 7 samples in steps of 4: one step an epoch, and 3 samples that no step takes.
for i in $(seq 7); do printf "document %d is as long as each of them is\n" "$i"; done |
  pretokenize -q --no-eos | pack -q --chunk 41 --mode none -o data
cat > tiny.json << 'END'
{"model_type": "llama", "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
 "num_key_value_heads": 1, "vocab_size": 272, "max_position_embeddings": 256}
END
run() { train -q --data data --model tiny.json --seq 64 --batch 4 --threads 1 --device cpu --drop-last --log-every 1 "$@"; }

# --tokens is reached, though an epoch has more tokens than its steps.
run --tokens 1000 --out tokens
seen=$(jq -s '[.[] | select(.type == "step")] | last | .tokens_seen' tokens/metrics.jsonl)
test "$seen" -ge 1000
test "$seen" -lt $((1000 + 4 * 41))

# A save comes after the last step of an epoch, not after the first of the next.
head -c 60000 "$TRAINWRIGHT_SOURCE_DIR/examples/data/tinyshakespeare.txt" | pretokenize -q --format lines |
  pack -q --chunk 256 -o text
train -q --data text --model tiny.json --seq 96 --batch 50 --threads 1 --device cpu --drop-last --log-every 1 --epochs 3 \
  --save-every epoch --keep 0 --out saves
steps=$(jq -s '[.[] | select(.type == "step")] | length' saves/metrics.jsonl)
test $((steps % 3)) -eq 0
expected=$(for epoch in 1 2 3; do printf 'step-%08d\n' $((steps / 3 * epoch)); done)
test "$(ls saves/checkpoints)" = "$expected"
