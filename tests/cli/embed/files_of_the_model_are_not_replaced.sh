# No output of embed, nor of evaluate with a model that embeds, replaces a file of the model or lies among them.
python3 "$TRAINWRIGHT_SOURCE_DIR/tests/embedding/fixtures/cut/make_folder.py" model mean
find model -type f -exec md5sum {} + > kept.md5
printf 'to be\nor not\n' > lines.txt
printf '{"query": "to be", "pos": ["or not"]}\n{"query": "that", "pos": ["is"]}\n' > pairs.jsonl
printf '{"_id": "d", "text": "to be"}\n' > corpus.jsonl
printf '{"_id": "q", "text": "or not"}\n' > queries.jsonl
printf 'q 0 d 1\n' > qrels
printf '{"a": "to be", "b": "or not", "score": 1}\n{"a": "that", "b": "is", "score": 2}\n' > scored.jsonl
refused() { fails 2 'which is an input' "$@" --threads 1 -q --checkpoint model; }
refused embed lines.txt --format npy -o model/new
refused embed lines.txt --format npy -o model/model.safetensors
refused embed --mine-negatives pairs.jsonl -o model/config.json
refused evaluate --metric retrieval --corpus corpus.jsonl --queries queries.jsonl --qrels qrels --run-out model/config.json
refused evaluate --metric sts --data scored.jsonl --cosines-out model/config.json
md5sum --quiet -c kept.md5
embed -q --threads 1 --checkpoint model lines.txt -o beside.npy
