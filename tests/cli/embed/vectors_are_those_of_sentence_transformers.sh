# For each way to pool and to attend, embed gives the vectors that sentence-transformers made of the same folder and texts.
golden=$TRAINWRIGHT_SOURCE_DIR/tests/embedding/fixtures/golden
python3 "$golden/make_model.py" base
pretokenize -q --tokenizer bytes --records contrastive --template grit "$golden/records.jsonl" | pack -q -o shards/
for options in "$golden"/*.options; do
  name=$(basename "$options" .options)
  # shellcheck disable=SC2046 # words of options
  train -q --init base --data shards --out "$name" --threads 1 $(cat "$options") > /dev/null
  embed -q --checkpoint "$name" "$golden/texts.jsonl" -o "$name.jsonl" --threads 1
  python3 "$golden/../vectors_agree.py" "$name.jsonl" "$golden/$name.vectors"
done
vectors=("$golden"/*.vectors)
test ${#vectors[@]} -eq 4
for file in "${vectors[@]}"; do
  test -e "$(basename "$file" .vectors).jsonl"
done
