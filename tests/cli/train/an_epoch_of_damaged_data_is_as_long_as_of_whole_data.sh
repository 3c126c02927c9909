# --epochs 1 under --skip-bad-chunks is a whole pass: what takes the places of chunks that cannot be read counts, too.
cat > model.json << 'JSON'
{"model_type": "llama", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
 "num_key_value_heads": 2, "vocab_size": 258, "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
 "tie_word_embeddings": true}
JSON
flip() { # flip FROM TO: one bit in its middle
  python3 - "$@" << 'PYTHON'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[len(data) // 2] ^= 4
open(sys.argv[2], "wb").write(data)
PYTHON
}
seq 1 20000 | tr '\n' ' ' | fold -w 400 | pretokenize -q --no-eos | pack -q --chunk 400 --mode none -o whole.tws
flip whole.tws damaged.tws
options="--skip-bad-chunks 1000 --model model.json --threads 1 --seq 256 --batch 8 --epochs 1 --log-every 1 --progress never"
for data in whole damaged; do train $options --data $data.tws --out run-$data 2> $data.err; done
python3 - << 'PYTHON'
import json
records = {data: [json.loads(line) for line in open(f"run-{data}/metrics.jsonl")] for data in ("whole", "damaged")}
steps = {data: [r for r in records[data] if r["type"] == "step"] for data in records}
for data, of_run in steps.items():
    assert of_run[-2]["epoch"] < 1 <= of_run[-1]["epoch"], (data, len(of_run), of_run[-1]["epoch"])
assert abs(len(steps["damaged"]) - len(steps["whole"])) <= 2, {data: len(steps[data]) for data in steps}
warnings = [r["message"] for r in records["damaged"] if r["type"] == "warning"]
assert any("chunks cannot be read: others take their places" in w for w in warnings), warnings
assert any("another chunk takes the place of chunk" in w for w in warnings), warnings
assert not any("--seq" in w for w in warnings), warnings
PYTHON
! grep "are in no sample" damaged.err

# Where nothing can be read there is nothing to train on.
seq 1 500 | tr '\n' ' ' | fold -w 400 | pretokenize -q --no-eos | pack -q --chunk 400 --mode none -o lost.tws
flip lost.tws lost.tws
fails 3 "lost.tws: hold no sample in the chunks that can be read" train $options --data lost.tws --out run-lost
test ! -e run-lost/complete.json
fails 3 "lost.tws: hold no chunk that can be read" train ${options/--epochs 1/--steps 2} --data lost.tws --out run-lost
