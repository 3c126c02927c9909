# For each way to pool and to attend, embed gives the vectors that sentence-transformers made of the same folder and texts.
golden=$TRAINWRIGHT_SOURCE_DIR/tests/embedding/fixtures/golden
python3 "$golden/make_model.py" base
pretokenize -q --tokenizer bytes --records contrastive --template grit "$golden/records.jsonl" | pack -q -o shards/
for options in "$golden"/*.options; do
  name=$(basename "$options" .options)
  # shellcheck disable=SC2046 # words of options
  train -q --init base --data shards --out "$name" --threads 1 $(cat "$options") > /dev/null
  embed -q --checkpoint "$name" "$golden/texts.jsonl" -o "$name.jsonl" --threads 1
done
python3 - "$golden" <<'PYTHON'
import json, pathlib, sys
golden = pathlib.Path(sys.argv[1])
names = sorted(path.stem for path in golden.glob("*.vectors"))
assert len(names) == 4, names
for name in names:
    theirs = [json.loads(line) for line in open(golden / f"{name}.vectors")]
    ours = [json.loads(line)["embedding"] for line in open(f"{name}.jsonl")]
    assert [len(row) for row in ours] == [len(row) for row in theirs], name
    for number, (own, other) in enumerate(zip(ours, theirs)):
        difference = max(abs(a - b) for a, b in zip(own, other))
        assert difference < 1e-5, f"{name}, text {number}: {difference:g}"
PYTHON
