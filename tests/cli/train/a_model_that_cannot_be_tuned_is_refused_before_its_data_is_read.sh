# scripts/finetune.sh: a model whose kind train does not know, or whose weights are missing, is refused before conversations
# are tokenized.
finetune=$TRAINWRIGHT_SOURCE_DIR/scripts/finetune.sh
python3 -c 'print("abcabd" * 400, end="")' > text.txt
pretokenize -q --format file text.txt | pack -q --chunk 256 -o shards/
train -q --batch 1 --seq 64 --threads 1 --model ten-nano --steps 1 --out began > /dev/null
cp -r "$(readlink -f began/latest)" model
rm model/metadata.json
echo '{"prompt": "a", "response": "b"}' > talks.jsonl
cp -r model other
python3 - << 'PYTHON'
import json, pathlib
config = pathlib.Path("other/config.json")
config.write_text(json.dumps({**json.loads(config.read_text()), "model_type": "mamba"}))
PYTHON
cp -r model bare
rm bare/model.safetensors
refused() {  # MODEL TEXT
  fails 3 "$2" "$finetune" --template plain --out tuned "$1" talks.jsonl -- --threads 1 --batch 1
  ! grep -q 'Conversations to shards' out || { cat out; exit 1; }
  test "$(ls -A tuned)" = '' || { ls -A tuned; exit 1; }
}
refused other 'mamba'
refused bare 'holds neither model.safetensors'
cp -r model broken
echo '{' > broken/config.json
refused broken 'broken/config.json: is no JSON object'
