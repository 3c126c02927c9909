# A model may end its samples by several ids, of turns and of texts: what is trained from it, merged into it or averaged
# ends by the same, in config.json and generation_config.json, through resume.
python3 -c 'print("abcabd" * 400, end="")' > text.txt
pretokenize -q --format file text.txt | pack -q --chunk 256 -o shards/
options=(-q --data shards --batch 1 --seq 64 --threads 1)
train "${options[@]}" --model ten-nano --steps 1 --out began > /dev/null
cp -r "$(readlink -f began/latest)" chat
rm chat/metadata.json
set_ends() {  # FILE ENDS
  python3 - "$@" << 'PYTHON'
import json, pathlib, sys
path = pathlib.Path(sys.argv[1])
path.write_text(json.dumps(json.loads(path.read_text()) | {"eos_token_id": json.loads(sys.argv[2])}))
PYTHON
}
ends() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["eos_token_id"])' "$1"; }
expect_ends() {  # FOLDER ENDS: the folder's own files, and what generate ends by
  test "$(ends "$1/config.json")" = "$2"
  test "$(ends "$1/generation_config.json")" = "$2"
  generate -q --checkpoint "$1" --prompt a --max-tokens 1 --threads 1 --summary summary.json > /dev/null
  python3 - "$2" << 'PYTHON'
import json, sys
ends = json.loads(sys.argv[1])
said = json.load(open("summary.json"))["end_ids"]
assert said == sorted(ends if isinstance(ends, list) else [ends]), said
PYTHON
}
for file in config generation_config; do set_ends chat/$file.json '[65, 257]'; done

train "${options[@]}" --init chat --steps 1 --out tuned > /dev/null
expect_ends tuned/latest '[65, 257]'
train -q --resume --out tuned --data shards --steps 2 --replan-schedule > /dev/null
expect_ends tuned/latest '[65, 257]'
train "${options[@]}" --init chat --lora 2 --steps 1 --out adapted > /dev/null
train -q --merge adapted --out merged > /dev/null
expect_ends merged '[65, 257]'

# The end of the data's tokenizer counts, too, and generation_config.json goes before config.json.
set_ends chat/generation_config.json '[65, 66]'
train "${options[@]}" --init chat --steps 1 --out more > /dev/null
expect_ends more/latest '[65, 66, 257]'

# A checkpoint of before, which has one of them, is continued and averaged as it is.
cp -r "$(readlink -f tuned/latest)" old
rm old/metadata.json
for file in config generation_config; do set_ends old/$file.json 257; done
train -q --average old --average tuned --out mean > /dev/null
train "${options[@]}" --init old --steps 1 --out older > /dev/null
expect_ends older/latest 257
