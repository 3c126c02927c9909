# embed --context-cache says how many texts it leaves out.
seq 400 > text
pretokenize -q text | pack -q --chunk 64 -o shards/
train -q --steps 1 --batch 1 --seq 64 --threads 1 --out run > /dev/null
printf '{"id": "a", "text": "one"}\n{"id": "b", "text": ""}\n' > texts.jsonl
embed --checkpoint run texts.jsonl -o out.npy --context-cache contexts --threads 1 2> err
test "$(wc -l < contexts/index.jsonl)" = 1
grep -q 'context-cache leaves out 1 text without a token' err
