# An id that is a whole number names its kept context as it does in all that embed and evaluate read.
seq 400 > text
pretokenize -q text | pack -q --chunk 64 -o shards/
train -q --steps 1 --batch 1 --seq 64 --threads 1 --out run > /dev/null
printf '{"id": 7, "text": "one two"}\n{"id": 8, "text": "three"}\n' > texts.jsonl
embed -q --checkpoint run texts.jsonl -o out.npy --context-cache contexts --threads 1
behind() { generate -q --checkpoint run --context-cache contexts --max-tokens 4 --threads 1 | python3 -c '
import json, sys
for line in sys.stdin: print(json.loads(line)["ids"])'; }
printf '{"prompt": "four", "context": 7}\n{"prompt": "four", "context": [7, 8]}\n' | behind > by-number
printf '{"prompt": "four", "context": "7"}\n{"prompt": "four", "context": ["7", "8"]}\n' | behind > by-text
cmp by-number by-text
printf '{"prompt": "four", "context": 7.5}\n' > prompts.jsonl
fails 3 'neither an id nor a list of ids' generate --checkpoint run --context-cache contexts --threads 1 < prompts.jsonl
