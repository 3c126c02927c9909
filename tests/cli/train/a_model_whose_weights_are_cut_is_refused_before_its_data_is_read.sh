# scripts/finetune.sh: weights that are cut, that are no safetensors file, or of which a file of the index is missing, are
# found before conversations are tokenized.
finetune=$TRAINWRIGHT_SOURCE_DIR/scripts/finetune.sh
python3 -c 'print("abcabd" * 400, end="")' > text.txt
pretokenize -q --format file text.txt | pack -q --chunk 256 -o shards/
train -q --batch 1 --seq 64 --threads 1 --model ten-nano --steps 1 --out began > /dev/null
cp -r "$(readlink -f began/latest)" model
rm model/metadata.json  # as of another program, without hashes
echo '{"prompt": "a", "response": "b"}' > talks.jsonl
for name in cut garbled sharded; do cp -r model $name; done
truncate -s -1 cut/model.safetensors
echo 'version https://git-lfs.github.com/spec/v1' > garbled/model.safetensors
mv sharded/model.safetensors sharded/model-00001-of-00002.safetensors
python3 - << 'PYTHON'
import json
with open("sharded/model-00001-of-00002.safetensors", "rb") as file:
    names = [name for name in json.loads(file.read(int.from_bytes(file.read(8), "little"))) if name != "__metadata__"]
files = {name: "model-00001-of-00002.safetensors" for name in names}
files[names[-1]] = "model-00002-of-00002.safetensors"
json.dump({"weight_map": files}, open("sharded/model.safetensors.index.json", "w"))
PYTHON
refused() {  # MODEL TEXT
  fails 3 "$2" "$finetune" --template plain --out tuned "$1" talks.jsonl -- --threads 1 --batch 1
  ! grep -q 'Conversations to shards' out || { cat out; exit 1; }
  test "$(ls -A tuned)" = '' || { ls -A tuned; exit 1; }
}
refused cut 'cut/model.safetensors: the safetensors file ends too early'
refused garbled 'garbled/model.safetensors: is not a safetensors file'
refused sharded 'sharded/model-00002-of-00002.safetensors: is missing'
