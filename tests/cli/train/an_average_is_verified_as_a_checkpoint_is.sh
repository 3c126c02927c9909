# The folder average of a checkpoint has metadata.json of its own: a flipped bit is refused, an adapter in it goes with its
# base alone, and equal runs write equal bytes.
printf '{"text": "one two three four"}\n{"text": "five six seven"}\n' > data.jsonl
pretokenize -q data.jsonl | pack -q --chunk 16 -o shards/
options=(-q --progress never --data shards --batch 1 --seq 16 --steps 2 --threads 1)
train "${options[@]}" --model llama-1m --ema 0.5 --async-save off --out run > /dev/null
train "${options[@]}" --model llama-1m --ema 0.5 --async-save on --out again > /dev/null
train "${options[@]}" --model llama-1m --ema 0.5 --compress-state --compress-model --out small > /dev/null
diff -r {run,again}/latest/average
python3 - <<'PYTHON'
import hashlib, json, pathlib
def listed(folder):
    return {name: entry["sha256"] for name, entry in json.load(open(f"{folder}/metadata.json"))["files"].items()}
for run in ("run", "small"):
    folder = pathlib.Path(run, "latest/average")
    there = {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.rglob("*") if p.is_file()}
    of_folder, of_checkpoint = listed(folder), listed(folder.parent)
    assert list(of_checkpoint) == sorted(of_checkpoint)
    assert {name[8:]: sha256 for name, sha256 in of_checkpoint.items() if name.startswith("average/")} == there
    del there["metadata.json"]
    assert of_folder == there
    metadata = json.load(open(folder / "metadata.json"))
    provenance = json.load(open(folder.parent / "metadata.json"))["provenance"]
    assert metadata["schema"] == "trainwright.model/1"
    assert metadata["provenance"] == {"made_by": "ema", "step": 2, **provenance}
    assert metadata.get("compressed_files") == (["model.safetensors"] if run == "small" else None)
PYTHON
fails 2 "holds the model alone, as --merge, --average and --ema write it" \
  train "${options[@]}" --branch-from run/latest/average --out branch
evaluate -q --checkpoint small/latest/average --data shards --threads 1 > out

flip() { printf '\1' | dd of="$1" bs=1 seek=100000 conv=notrunc status=none; }
cp -r "$(readlink -f run/latest)" bad && flip bad/average/model.safetensors
problem="average/model.safetensors: does not match its sha256"
fails 3 "$problem" evaluate -q --checkpoint bad --data shards --threads 1
fails 3 "$problem" evaluate -q --checkpoint bad/average --data shards --threads 1
fails 3 "$problem" generate -q --checkpoint bad/average --max-tokens 2 --prompt one
fails 3 "$problem" train "${options[@]}" --init bad/average --out other
fails 3 "$problem" train -q --average run --average bad/average --out other
# What was saved without it is read as it was.
rm bad/average/metadata.json
evaluate -q --checkpoint bad/average --data shards --threads 1 > out

train "${options[@]}" --init run --lora 2 --ema 0.5 --out adapter > /dev/null
train "${options[@]}" --model llama-1m --seed 7 --out another > /dev/null
average=adapter/latest/average
for adapter in adapter $average; do
  problem="another/.*is not the base that adapter/.*was trained on"
  fails 3 "$problem" train -q --merge $adapter --init another --out other
  fails 3 "$problem" train "${options[@]}" --adapter $adapter --init another --lora 2 --out other
  fails 3 "$problem" evaluate -q --checkpoint another --adapter $adapter --data shards --threads 1
done
test ! -e other
train -q --merge $average --out merged > /dev/null
train "${options[@]}" --adapter $average --init run --lora 2 --out on > /dev/null
evaluate -q --checkpoint $average --data shards --threads 1 > out
train -q --merge $average --init another --allow-other-base --out other > /dev/null
