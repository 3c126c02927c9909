# What a line has besides its prompt comes out as it was written, be it a number that no type holds; a line that is nested
# too deep is refused by its number.
python3 -c 'print("abcabd" * 400, end="")' > text.txt
pretokenize -q --format file text.txt | pack -q --chunk 256 -o shards/
train -q --model ten-nano --steps 2 --batch 1 --seq 64 --threads 1 --out tiny > /dev/null
said() { generate -q --checkpoint tiny --threads 1 --max-tokens 4 "$@"; }
echo '{"id": 123456789012345678901234567890, "prompt": "abc", "share": 0.10000000000000000001, "deep": {"a": [1.50 , -0]}}' |
  said --input - > samples
grep -qF '"id":123456789012345678901234567890,"share":0.10000000000000000001,"deep":{"a": [1.50 , -0]}}' samples
python3 -c '
import json
line = json.load(open("samples"))
assert line["prompt"] == "abc" and line["id"] == 123456789012345678901234567890, line'

python3 -c 'print("{\"prompt\": \"a\"}\n{\"prompt\": \"a\", \"x\": " + "[" * 200000 + "]" * 200000 + "}")' > deep.jsonl
fails 3 'line 2.*nested deeper than 1000\|nested deeper than 1000.*line 2' said --input deep.jsonl
fails 3 'line 2.*nested deeper than 1000\|nested deeper than 1000.*line 2' said --template alpaca --input deep.jsonl
