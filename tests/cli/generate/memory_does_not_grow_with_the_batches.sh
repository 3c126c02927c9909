# Two hundred batches take the memory of ten, and every prompt gets the same ids whatever batch it is in.
seq 400 > text
pretokenize -q text | pack -q --chunk 64 -o shards/
cat > tiny.json << 'JSON'
{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 258, "hidden_size": 64, "intermediate_size": 128,
 "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 128}
JSON
train -q --data shards --model tiny.json --steps 2 --batch 1 --seq 64 --threads 1 --out run > /dev/null
python3 -c '
import json
for i in range(400): print(json.dumps({"prompt": "to be " * (1 + i % 7), "id": i}))' > prompts.jsonl
asked() { head -n "$1" prompts.jsonl | generate -q --checkpoint run --input - --batch "$2" --batch-invariant --max-tokens 12 \
            --temperature 1 --seed 3 --threads 1 --summary "summary-$1-$2.json" > "samples-$1-$2"; }
asked 20 2
asked 400 2
asked 400 16
cmp samples-400-2 samples-400-16
head -n 20 samples-400-2 | cmp - samples-20-2
python3 -c '
import json
few, many = (json.load(open(f"summary-{count}-2.json"))["max_memory_bytes"] for count in (20, 400))
assert many < 1.05 * few, (few, many)'
