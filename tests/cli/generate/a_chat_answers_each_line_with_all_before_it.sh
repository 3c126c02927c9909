# generate --chat answers each line of standard input as a prompt that holds all that was said before.
python3 -c 'print("abcabd" * 400, end="")' > text.txt
pretokenize -q --format file text.txt | pack -q --chunk 256 -o shards/
train -q --model ten-nano --steps 2 --batch 1 --seq 64 --threads 1 --out tiny > /dev/null
said() { generate -q --checkpoint tiny --threads 1 --template alpaca --max-tokens 6 "$@"; }
printf 'One?\n\nTwo?' | said --chat --system 'Be brief.' --format jsonl > lines
printf 'One?\n\nTwo?' | said --chat --system 'Be brief.' > texts
python3 - <<'PYTHON'
import json
first, second = map(json.loads, open("lines"))
assert [turn["role"] for turn in first["messages"]] == ["system", "user"], first
assert [turn["content"] for turn in second["messages"]] == ["Be brief.", "One?", first["text"], "Two?"], second
texts = open("texts", "rb").read().decode(errors="replace")
assert texts == first["text"] + "\n" + second["text"] + "\n", (texts, first, second)
json.dump({"messages": second["messages"]}, open("asked.jsonl", "w"))
PYTHON
said --input asked.jsonl > asked
python3 - <<'PYTHON'
import json
second, asked = json.loads(open("lines").readlines()[1]), json.load(open("asked"))
assert asked["ids"] == second["ids"], (asked, second)
PYTHON
fails 2 template generate --checkpoint tiny --threads 1 --chat
fails 2 samples said --chat --samples 2
fails 2 excludes said --chat --prompt a
fails 2 "--chat" said --system a --prompt b
