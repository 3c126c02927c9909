# --num-samples caps each set by its name, wherever the run goes on; the run says what it takes.
python3 - <<'PYTHON'
import json
for name, count in (("first", 12), ("second", 6)):
    with open(name + ".jsonl", "w") as pairs:
        for i in range(count):
            pairs.write(json.dumps({"query": f"{name} {i}?", "pos": [f"{i}"], "neg": [f"{i + 1}", f"{i + 2}"]}) + "\n")
PYTHON
for name in first second; do
  pretokenize -q --records contrastive $name.jsonl | pack -q --chunk 512 -o $name/
done
cat > tiny.json << 'END'
{"model_type": "llama", "vocab_size": 512, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1,
 "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 256, "rms_norm_eps": 1e-5,
 "rope_theta": 10000, "tie_word_embeddings": false, "hidden_act": "silu"}
END
set -- --objective grit --model tiny.json --batch 2 --accum 1 --steps 3 --threads 1 --data first --data second
refused() {  # STATUS TEXT ARGUMENT...
  fails "$1" "$2" train -q "${@:3}"
}
printf '{"first": 8}' > counts.json
refused 2 '"second"' "$@" --num-samples counts.json --dry-run
refused 2 '--data-weights: does not go with several sets' "$@" --data-weights 1,3 --dry-run
printf '{"first": 8, "second": 100}' > counts.json
train -q "$@" --num-samples counts.json --log-every 1 --out run > /dev/null
python3 - <<'PYTHON'
import json
assert json.load(open("run/dataset_num_samples.json")) == {"first": 8, "second": 6}
steps = [record for record in map(json.loads, open("run/metrics.jsonl")) if record["type"] == "step"]
assert len(steps) == 3
for number, step in enumerate(steps, 1):
    assert sum(step["source_tokens"]) == step["tokens"], step
    assert abs(step["epoch"] - number / 7) < 1e-6, step  # of 8 and 6 records, two a step
PYTHON
printf '{"text": "one two three four"}\n' > text.jsonl
pretokenize -q text.jsonl | pack -q --chunk 512 -o text/
train "$@" --data text --mode embedding --dry-run > out 2> err
grep -q 'text: is not read, for this run takes no lm records' err || { cat err; exit 1; }

# Resumed elsewhere it finds the file; of another one it is another run.
mkdir elsewhere
(cd elsewhere && train -q --resume --out ../run > /dev/null)
(cd elsewhere && train -q --branch-from ../run --data ../first --data ../second --steps 4 --out branch > /dev/null)
cmp run/dataset_num_samples.json elsewhere/branch/dataset_num_samples.json
# Another name of it, or another file of the same counts, is the same run.
cp counts.json elsewhere/same.json
train -q --resume --out run --num-samples elsewhere/same.json > /dev/null
printf '{"first": 9, "second": 100}' > counts.json
refused 3 'other samples are taken of it' --resume --out run
refused 3 'other samples are taken of it' --resume --out run --num-samples ./counts.json
