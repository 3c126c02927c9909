# Steps a second, effective batch, peak memory, precision and accumulation: in each record of a step, and in the summary.
seq 400 > text
pretokenize -q text | pack -q --chunk 64 -o shards/
train -q --data shards --model ten-nano --steps 3 --batch 1 --accum 2 --seq 64 --threads 1 --mixed-precision bf16 --log-every 1 \
  --summary summary.json --out run > /dev/null
python3 - << 'PYTHON'
import json
steps = [record for record in map(json.loads, open("run/metrics.jsonl")) if record["type"] == "step"]
assert len(steps) == 3, steps
for record in [*steps, json.load(open("summary.json"))]:
    assert record["steps_per_s"] > 0 and record["max_memory_bytes"] > 10_000_000, record
    assert (record["effective_batch"], record["accum"], record["precision"]) == (2, 2, "bf16"), record
PYTHON
