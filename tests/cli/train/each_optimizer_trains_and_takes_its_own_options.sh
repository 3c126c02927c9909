# Every optimizer trains, and a run goes on with its own; options that an optimizer does not have, and values that they cannot have,
# are refused before there is a folder.
seq 400 > text
pretokenize -q text | pack -q --chunk 256 -o shards/
cat > tiny.json << 'JSON'
{"model_type": "llama", "vocab_size": 258, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1,
 "num_attention_heads": 2, "max_position_embeddings": 64}
JSON
small=(train -q --data shards --model tiny.json --batch 2 --seq 64 --threads 1 --schedule constant --warmup 0)
weights=checkpoints/step-00000003/model.safetensors
for optimizer in adamw8bit lion muon sgd; do
  "${small[@]}" --steps 3 --optimizer "$optimizer" --out whole-"$optimizer" > /dev/null
  "${small[@]}" --steps 2 --optimizer "$optimizer" --out "$optimizer" > /dev/null
  train -q --resume --steps 3 --threads 1 --out "$optimizer" > /dev/null
  cmp whole-"$optimizer"/$weights "$optimizer"/$weights
done
"${small[@]}" --steps 1 --optimizer muon --optimizer-option momentum=0.9 --out options > /dev/null
grep -q '"momentum": *0.9' options/run.json
fails 2 "cannot be '2'" "${small[@]}" --steps 2 --optimizer sgd --optimizer-option nesterov=2 --out refused
fails 2 "has no option 'nesterov'" "${small[@]}" --steps 2 --optimizer lion --optimizer-option nesterov=1 --out refused
fails 2 'adam-eps: has a meaning only with --optimizer adamw or muon or adamw8bit' \
  "${small[@]}" --steps 2 --optimizer sgd --adam-eps 1e-6 --out refused
test ! -e refused
