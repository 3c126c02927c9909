# Queries of eight letters and texts of the same letters in a cipher and in another order: nothing but training tells which
# letter stands for which. Among 64 texts that were held out the right one is found, which chance does for few.
python3 - <<'PYTHON'
import json, random
rng = random.Random(3)
letters = "abcdefghijklmnopqrstuvwxyz"
cipher = dict(zip(letters, rng.sample(letters.upper(), 26)))
def pairs(count, name):
    with open(name + ".jsonl", "w") as file:
        for _ in range(count):
            query = rng.sample(letters, 8)
            text = [cipher[letter] for letter in rng.sample(query, 8)]
            file.write(json.dumps({"query": "".join(query), "pos": ["".join(text)], "neg": []}) + "\n")
pairs(2000, "pairs")
pairs(64, "held-out")
PYTHON
for name in pairs held-out; do
  pretokenize -q --records contrastive $name.jsonl | pack -q --chunk 512 -o $name/
done
cat > tiny.json << 'END'
{"model_type": "llama", "vocab_size": 258, "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1,
 "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
 "rope_theta": 10000, "tie_word_embeddings": true, "hidden_act": "silu"}
END
train -q --objective grit --mode embedding --model tiny.json --data pairs --eval-data held-out --group-size 1 \
  --query-max-len 40 --passage-max-len 40 --temperature 0.05 --batch 32 --accum 1 --steps 200 --lr 5e-3 --seed 1 \
  --threads 1 --log-every 200 --eval-every 200 --save-every 0 --out run > /dev/null
python3 - <<'PYTHON'
import json
records = [json.loads(line) for line in open("run/metrics.jsonl")]
measured = {record["step"]: record["ndcg_at_10"] for record in records if record["type"] == "eval"}
assert measured[0] < 0.5 and measured[200] > 0.9, measured
PYTHON
