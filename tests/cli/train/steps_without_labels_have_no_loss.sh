# A step whose samples hold no label has null for a loss: it is not the best of the run, and many of them do not make the watchdog stop it.
python3 -c '
for i in range(72): print("abcdefgh" if i % 18 == 0 else "a")' > texts
pretokenize -q --no-eos texts | pack -q --chunk 16 --mode none -o shards/
train -q --model ten-nano --epochs 1 --batch 1 --accum 1 --seq 16 --threads 1 --log-every 1 --watchdog stop --z-loss 1e-4 \
  --summary summary.json --out run > /dev/null
python3 - << 'PYTHON'
import json
records = [json.loads(line) for line in open("run/metrics.jsonl")]
steps = [record for record in records if record["type"] == "step"]
assert len(steps) == 72, len(steps)
assert sum(step["labels"] > 0 for step in steps) == 4
for step in steps:
    assert (step["loss_nats"] is None) == (step["labels"] == 0), step
    assert (step["z_loss_nats"] is None) == (step["labels"] == 0), step
best = min(step["loss_nats"] for step in steps if step["labels"] > 0)
end = records[-1]
assert (end["type"], end["reason"]) == ("run_end", "complete"), end
assert best > 0 and end["best_loss_nats"] == best, end
assert json.load(open("summary.json"))["best_loss_nats"] == best
assert json.load(open("run/latest/metadata.json"))["best_loss"] == best
PYTHON
python3 "$TRAINWRIGHT_SOURCE_DIR/tests/train/check_metrics.py" "$TRAINWRIGHT_SOURCE_DIR/lib/run/metrics.schema.json" run/metrics.jsonl \
  > /dev/null
