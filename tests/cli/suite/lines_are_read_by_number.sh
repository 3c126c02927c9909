# --lines finds lines of a large file by their numbers, as sed prints them, in bounded memory.
python3 - <<'PYTHON'
with open("large.jsonl", "w") as out:
    for i in range(200000):
        out.write('{"text": "document %d %s"}\n' % (i, "x" * (i % 500)))
PYTHON
sed -n '3p;70001,70040p;199990,$p' large.jsonl > wanted.jsonl
pretokenize -q wanted.jsonl -o wanted.tok
pretokenize -q --threads 1 --summary summary.json --lines 199990-,70001-70040,3 large.jsonl -o lines.tok
cmp lines.tok wanted.tok
pretokenize -q --threads 1 --summary first.json --lines 3 large.jsonl -o first.tok
python3 - <<'PYTHON'
import json, os
summary, first = json.load(open("summary.json")), json.load(open("first.json"))
assert summary["documents"] == 52, summary
# Lines at the end take no more memory than one at the beginning.
size = os.path.getsize("large.jsonl")
assert size > 50e6 and summary["max_memory_bytes"] < first["max_memory_bytes"] + 8e6, (size, first, summary)
PYTHON
# What is not wanted is not parsed.
sed -i '5s/.*/no JSON/' large.jsonl
pretokenize -q --lines 6-7 large.jsonl -o some.tok
pretokenize -q --lines 5 large.jsonl -o none.tok 2> messages && exit 1 || test $? = 3
grep -q 'line 5' messages
head -n 1000 large.jsonl | gzip > small.jsonl.gz
pretokenize -q --lines 900-901,1000 small.jsonl.gz -o packed.tok
sed -n '900,901p;1000p' large.jsonl | pretokenize -q --format jsonl -o expected.tok
cmp packed.tok expected.tok
for bad in 0 5-4 1,,2 x; do
  pretokenize -q --lines "$bad" large.jsonl -o none.tok 2> messages && exit 1 || test $? = 2
done
pretokenize -q --lines 200001 large.jsonl -o none.tok 2> messages && exit 1 || test $? = 2
grep -q 'has 200,\?000 lines' messages
pretokenize -q --lines 1 large.jsonl small.jsonl.gz -o none.tok 2> messages && exit 1 || test $? = 2
pretokenize -q --lines 1 -o none.tok < large.jsonl 2> messages && exit 1 || test $? = 2
pretokenize -q --lines 1 --slice 1/2 large.jsonl -o none.tok 2> messages && exit 1 || test $? = 2
test ! -e none.tok
