# Under causal attention --pooling cls would make the same vector of all texts that begin alike. It is refused as train
# refuses it; of a folder that says both it is a warning, and its vectors are made.
head -c 20000 "$TRAINWRIGHT_SOURCE_DIR/examples/data/tinyshakespeare.txt" > text.txt
pretokenize -q text.txt | pack -q --chunk 256 -o shards/
train -q --steps 1 --batch 1 --seq 64 --threads 1 --out run > /dev/null
printf 'to be\nto see\n' > lines.txt
printf '{"_id": "d1", "text": "to be"}\n' > corpus.jsonl
printf '{"_id": "q1", "text": "to see"}\n' > queries.jsonl
printf 'q1 0 d1 1\n' > qrels
retrieval=(evaluate -q --metric retrieval --checkpoint run --corpus corpus.jsonl --queries queries.jsonl --qrels qrels)
reason='cls takes the first token, which under --attn cccc sees nothing but itself'
fails 2 "$reason" embed -q --checkpoint run lines.txt --pooling cls
fails 2 "$reason" embed -q --checkpoint run lines.txt --pooling cls --attn cccc
fails 2 "$reason" "${retrieval[@]}" --pooling cls
embed -q --checkpoint run lines.txt --pooling cls --attn bbcc > out
"${retrieval[@]}" --pooling cls --attn bbcc > out

python3 - > run/checkpoints/step-00000001/embedding.json <<'PYTHON'
import json
print(json.dumps({"schema": "trainwright.embedding/1", "pooling": "cls", "attention": "cccc", "normalize": True,
                  "dimension": 0, "projection": 0, "query_max_len": 0, "passage_max_len": 0, "template": "",
                  "similarity": "cosine"}))
PYTHON
embed --checkpoint run lines.txt > out 2> err
grep -q 'warning: run.*: pools the first token under causal attention' err || { cat err; exit 1; }
test "$(wc -l < out)" = 2
