# embed --context-cache keeps what the model has of texts; generate goes on behind them as behind the texts themselves.
head -c 20000 "$TRAINWRIGHT_SOURCE_DIR/examples/data/tinyshakespeare.txt" > text.txt
pretokenize -q text.txt | pack -q --chunk 256 -o shards/
train -q --steps 3 --batch 2 --seq 64 --threads 1 --out run > /dev/null
printf '%s\n' '{"id": "a", "text": "To be, or not to be, "}' '{"id": "b", "text": "O Romeo, "}' > texts.jsonl
embed -q --checkpoint run texts.jsonl -o plain.npy --threads 1
embed -q --checkpoint run texts.jsonl -o out.npy --context-cache contexts --threads 1
cmp plain.npy out.npy
test "$(wc -l < contexts/index.jsonl)" = 2
prompts() { printf '{"prompt": "that is", "context": "a"}\n{"prompt": "Romeo", "context": ["b"]}\n{"prompt": "alone"}\n'; }
prompts | generate -q --checkpoint run --context-cache contexts --max-tokens 12 --threads 1 --summary summary.json > behind
printf '{"prompt": "To be, or not to be, that is"}\n{"prompt": "O Romeo, Romeo"}\n{"prompt": "alone"}\n' |
  generate -q --checkpoint run --max-tokens 12 --threads 1 > written
python3 - <<'PYTHON'
import json
behind, written = ([json.loads(line)["ids"] for line in open(name)] for name in ("behind", "written"))
assert behind == written, (behind, written)
assert json.load(open("summary.json"))["context_tokens"] == len("To be, or not to be, ") + len("O Romeo, ")
PYTHON

refused() { # refused STATUS TEXT COMMAND...
  fails "$@" < prompts.jsonl
}
prompts > prompts.jsonl
refused 2 'exists' embed --checkpoint run texts.jsonl -o again.npy --context-cache contexts
refused 3 'precision' generate --checkpoint run --context-cache contexts --mixed-precision bf16
refused 2 'prompt' generate --checkpoint run --context-cache contexts --prompt x
printf '{"prompt": "x", "context": "nobody"}\n' > prompts.jsonl
refused 3 'context nobody' generate --checkpoint run --context-cache contexts
train -q --steps 1 --batch 1 --seq 64 --seed 9 --threads 1 --out other > /dev/null
refused 3 'another model' generate --checkpoint other --context-cache contexts
printf 'no id\n' > lines.txt
refused 3 'without an id' embed --checkpoint run lines.txt -o lines.npy --context-cache new
test ! -e new
