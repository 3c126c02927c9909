# --average writes the mean of the weights of models, and refuses what has none.
printf '{"text": "one two three four"}\n{"text": "five six seven"}\n' > data.jsonl
pretokenize -q --tokenizer "$TRAINWRIGHT_SOURCE_DIR/examples/data/mistral-v1.model" data.jsonl | pack -q --chunk 16 -o shards/
options="-q --progress never --data shards --batch 1 --seq 16 --threads 1"
train $options --model llama-1m --steps 3 --save-every 1 --keep 0 --out run
train -q --average run/checkpoints/step-00000001 --average run/checkpoints/step-00000002 --average run --out mean > summary.json
python3 - <<'PYTHON'
import json, struct
def tensors(path):
    data = open(path + "/model.safetensors", "rb").read()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    body = data[8 + size:]
    return {name: struct.unpack(f"<{(e['data_offsets'][1] - e['data_offsets'][0]) // 4}f", body[slice(*e["data_offsets"])])
            for name, e in header.items() if "norm" in name or "k_proj" in name}
def as_float(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]
models = [tensors(f"run/checkpoints/step-0000000{step}") for step in (1, 2, 3)]
mean = tensors("mean")
for name, values in mean.items():
    for i, value in enumerate(values):
        assert value == as_float(sum(model[name][i] for model in models) / 3), name
PYTHON
evaluate -q --checkpoint mean --data shards --threads 1 > out
generate -q --checkpoint mean --max-tokens 2 --temperature 0 --prompt one > out
train $options --init mean --steps 1 --out after

# Of a model that embeds texts, the projection too.
grit_sets
train -q --progress never --data pairs --model llama-1m --mode embedding --projection 4 --steps 2 --save-every 1 --keep 0 \
  --batch 4 --threads 1 --out embeds
train -q --average embeds/checkpoints/step-00000001 --average embeds --out embeds_mean
python3 - <<'PYTHON'
import json, struct
def matrix(folder):
    data = open(folder + "/2_Dense/model.safetensors", "rb").read()
    (size,) = struct.unpack("<Q", data[:8])
    begin, end = json.loads(data[8:8 + size])["linear.weight"]["data_offsets"]
    return struct.unpack(f"<{(end - begin) // 4}f", data[8 + size + begin:8 + size + end])
a, b, mean = map(matrix, ("embeds/checkpoints/step-00000001", "embeds/checkpoints/step-00000002", "embeds_mean"))
assert a != b and max(abs(m - (x + y) / 2) for m, x, y in zip(mean, a, b)) < 1e-7
PYTHON
fails 3 "another shape\|embeds texts" train -q --average run --average embeds --out bad

fails 2 "needs two models" train -q --average run --out one
fails 2 "exists already" train -q --average run --average run --out mean
fails 2 "name it with --out" train -q --average run --average run
train $options --init run --lora 2 --steps 1 --out adapter
fails 2 "is an adapter" train -q --average run --average adapter --out bad
train $options --model llama-5m --steps 1 --out other
fails 3 "another shape" train -q --average run --average other --out bad
test ! -e bad

# What cannot be written leaves nothing of the model, and the same command works once it can.
mkdir empty there && ln -s there linked
for out in part deep/part empty linked; do
  everything() { find . -mindepth 1 | grep -v -x ./deep | sort; }
  touch before && everything > before
  (ulimit -f 64 && fails 4 "raise the limit" train -q --average run --average run/checkpoints/step-00000001 --out $out)
  everything | diff before -
  train -q --average run --average run/checkpoints/step-00000001 --out $out/
  evaluate -q --checkpoint $out --data shards --threads 1 > out
done
test -L linked && test -e there/config.json
# A folder that is there stays: it may be a mount point.
mkdir -m 700 private && before=$(stat -c '%i %a' private)
train -q --average run --average run/checkpoints/step-00000001 --out private
test "$(stat -c '%i %a' private)" = "$before" && test -e private/metadata.json
ln -s nowhere dangling
fails 2 "choose another folder with --out" train -q --average run --average run --out dangling

# It is done alone, and what it would leave out of account is refused.
fails 2 "--merge, --average: cannot both be done" train -q --average run --average run --merge adapter --out bad
fails 2 "--average, --dry-run: cannot both be given" train -q --average run --average run --dry-run --out bad
fails 2 "--steps: has no meaning with --average" train -q --average run --average run --steps 3 --out bad
fails 2 "--data: has no meaning with --merge" train -q --merge adapter --data shards --out bad
test ! -e bad
