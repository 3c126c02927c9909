# --average and --merge write metadata.json: of what the model was made, and the hashes by which a flipped bit is seen.
printf '{"text": "one two three four"}\n{"text": "five six seven"}\n' > data.jsonl
pretokenize -q --tokenizer "$TRAINWRIGHT_SOURCE_DIR/examples/data/mistral-v1.model" data.jsonl | pack -q --chunk 16 -o shards/
options="-q --progress never --data shards --batch 1 --seq 16 --threads 1"
train $options --model llama-1m --steps 2 --save-every 1 --keep 0 --out run
train $options --init run --lora 2 --steps 1 --out adapter
train -q --average run/checkpoints/step-00000001 --average run --out mean
train -q --merge adapter --out merged
python3 - <<'PYTHON'
import hashlib, json, pathlib
def sha256(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
for folder, made_by, inputs in (
    ("mean", "average", [("run/checkpoints/step-00000001", "model.safetensors"), ("run/checkpoints/step-00000002", "model.safetensors")]),
    ("merged", "merge", [("run/checkpoints/step-00000002", "model.safetensors"), ("adapter/checkpoints/step-00000001", "adapter_model.safetensors")])):
    metadata = json.load(open(folder + "/metadata.json"))
    assert metadata["schema"] == "trainwright.model/1" and metadata["tool"] == "train" and metadata["version"], metadata
    listed = {name: entry["sha256"] for name, entry in metadata["files"].items()}
    there = [str(p.relative_to(folder)) for p in pathlib.Path(folder).rglob("*") if p.is_file() and p.name != "metadata.json"]
    assert listed == {name: sha256(folder + "/" + name) for name in there}, (listed, there)
    provenance = metadata["provenance"]
    assert provenance["made_by"] == made_by and made_by in provenance["options"], provenance
    assert len(provenance["inputs"]) == len(inputs)
    for said, (path, weights) in zip(provenance["inputs"], inputs):
        assert said["path"].endswith(path) and said["sha256"] == sha256(path + "/" + weights), said
        assert said["files"]["config.json" if weights == "model.safetensors" else "adapter_config.json"], said
PYTHON

for model in mean merged; do
  evaluate -q --checkpoint $model --data shards --threads 1 > out
  generate -q --checkpoint $model --max-tokens 2 --temperature 0 --prompt one > out
  train $options --init $model --steps 1 --out after_$model
  train $options --init $model --lora 2 --steps 1 --out adapter_of_$model
  evaluate -q --checkpoint adapter_of_$model --data shards --threads 1 > out
  ckpt-compress -q $model -o $model.twc
  ckpt-compress -q -d $model.twc -o $model.again
  cmp $model/metadata.json $model.again/metadata.json
  evaluate -q --checkpoint $model.again --data shards --threads 1 > out
  fails 2 "holds the model alone, as --merge, --average and --ema write it" train $options --steps 1 --branch-from $model --out branch
  printf '\1' | dd of=$model/model.safetensors bs=1 seek=100000 conv=notrunc status=none
  fails 3 "model.safetensors: does not match its sha256" evaluate -q --checkpoint $model --data shards --threads 1
  fails 3 "model.safetensors: does not match its sha256" train $options --init $model --steps 1 --out bad
done
