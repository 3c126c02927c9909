# --summary replaces no file of the run of --branch-from, named with a step or without.
head -c 20000 "$TRAINWRIGHT_SOURCE_DIR/examples/data/tinyshakespeare.txt" > text.txt
pretokenize -q text.txt | pack -q --chunk 256 -o shards/
train -q --steps 1 --batch 1 --seq 64 --threads 1 --out run > /dev/null
before=$(md5sum run/metrics.jsonl)
for reference in run run@1; do
  fails 2 '--summary: ' train -q --branch-from "$reference" --steps 2 --threads 1 --out branch --summary run/metrics.jsonl
done
test "$(md5sum run/metrics.jsonl)" = "$before"
