# Texts that are too long have the vectors that sentence-transformers made of the same folder: cut by tokens, whatever characters these
# have, and with the special tokens that the tokenizer puts behind a text.
cut=$TRAINWRIGHT_SOURCE_DIR/tests/embedding/fixtures/cut
for pooling in mean lasttoken; do
  python3 "$cut/make_folder.py" "$pooling" "$pooling"
  embed -q --checkpoint "$pooling" "$cut/texts.jsonl" -o "$pooling.jsonl" --threads 1 --summary "$pooling.json"
done
python3 - "$cut" <<'PYTHON'
import json, pathlib, sys
cut = pathlib.Path(sys.argv[1])
for pooling in ("mean", "lasttoken"):
    theirs = [json.loads(line) for line in open(cut / f"{pooling}.vectors")]
    ours = [json.loads(line)["embedding"] for line in open(f"{pooling}.jsonl")]
    assert [len(row) for row in ours] == [len(row) for row in theirs], pooling
    for number, (own, other) in enumerate(zip(ours, theirs)):
        difference = max(abs(a - b) for a, b in zip(own, other))
        assert difference < 1e-5, f"{pooling}, text {number}: {difference:g}"
    assert json.load(open(f"{pooling}.json"))["texts_cut"] == 3, pooling
PYTHON
