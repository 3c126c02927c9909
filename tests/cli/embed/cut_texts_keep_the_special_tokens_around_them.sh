# Texts that are too long have the vectors that sentence-transformers made of the same folder: cut by tokens, whatever characters these
# have, and with the special tokens that the tokenizer puts behind a text.
cut=$TRAINWRIGHT_SOURCE_DIR/tests/embedding/fixtures/cut
for pooling in mean lasttoken; do
  python3 "$cut/make_folder.py" "$pooling" "$pooling"
  embed -q --checkpoint "$pooling" "$cut/texts.jsonl" -o "$pooling.jsonl" --threads 1 --summary "$pooling.json"
  python3 "$cut/../vectors_agree.py" "$pooling.jsonl" "$cut/$pooling.vectors"
  test "$(jq .texts_cut "$pooling.json")" -eq 3
done
