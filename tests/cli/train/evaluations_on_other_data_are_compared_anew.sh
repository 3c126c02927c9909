# A run, or a branch of one, that is evaluated on other data than before ends early, and has its best checkpoint, by losses of
# that data alone, which begin with the model that it goes on from.
seq 400 | sed 's/$/ bottles of beer on the wall/' > text
seq 90 | sed 's/^/Zwölf Boxkämpfer jagen Viktor /' > other
pretokenize -q text | pack -q --chunk 256 -o shards/
pretokenize -q other | pack -q --chunk 256 -o other-shards/
train -q --model neox-tiny --data shards --eval-data shards --seq 64 --batch 4 --threads 1 --schedule constant --eval-every 4 --early-stop 2 --steps 12 \
  --save-every 4 --keep-best 1 --out run
cp -r run longer
train --branch-from run --out branch --eval-data other-shards --steps 24 --early-stop 2 --keep-best 1 --save-every 4 2> told
train --resume --out longer --eval-data other-shards --steps 24 2>> told
test "$(grep -c 'evaluations are on other data than before' told)" = 2
python3 - << 'PYTHON'
import json, os
for run in ("branch", "longer"):
    losses = {r["step"]: r["loss_nats"] for r in map(json.loads, open(f"{run}/metrics.jsonl")) if r["type"] == "eval"}
    assert [r["step"] for r in map(json.loads, open(f"{run}/metrics.jsonl")) if r["type"] == "eval" and r["step"] == 12] == [12]
    of_other = {step: loss for step, loss in losses.items() if step >= 12}
    assert min(of_other.values()) > min(losses.values()) or run == "branch", losses
    # The oracle: the end that the losses of the other data alone give.
    best, end = None, 24
    for step in range(12, 25, 4):
        if best is None or of_other[step] < of_other[best]:
            best = step
        if step - best >= 2 * 4:
            end = step
            break
    assert max(of_other) == end, (run, of_other, end)
    wanted = min((step for step in of_other if step > 12 or run == "longer"), key=of_other.get)
    assert os.readlink(f"{run}/best").endswith(f"{wanted:08}"), (run, of_other, os.readlink(f"{run}/best"))
PYTHON
