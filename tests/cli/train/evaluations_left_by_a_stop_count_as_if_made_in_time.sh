# A process that is stopped leaves an evaluation that is due to the next: the run then has the same best checkpoint, the same
# checkpoints, one record of each evaluation, and losses in metadata.json, that of copies too, and complete.json as one that was
# never stopped.
seq 400 | sed 's/$/ bottles of beer on the wall/' > text
tail -90 text > held
pretokenize -q text | pack -q --chunk 256 -o shards/
pretokenize -q held | pack -q --chunk 256 -o held-out/
begin() { # begin RUN ARGUMENT...
  local run=$1
  shift
  train -q --model neox-tiny --data shards --eval-data held-out --seq 64 --batch 2 --optimizer lion --lr 0.01 --schedule linear \
    --threads 1 --out "$run" --copy-to "$run-copies" "$@"
}
# stopped RUN ARGUMENT...: stopped after each step, whatever is due there.
stopped() {
  local run=$1
  begin "$@" --max-minutes 1e-7
  until train -q --status "$run" > /dev/null; do train -q --resume --out "$run" --max-minutes 1e-7; done
}
outcome() { # outcome RUN: all that evaluations decide
  python3 - "$1" << 'PYTHON'
import json, os, sys
run = sys.argv[1]
evaluations = [(r["step"], r["loss_nats"]) for r in map(json.loads, open(f"{run}/metrics.jsonl")) if r["type"] == "eval"]
for name in os.listdir(f"{run}/checkpoints"):
    of_copy = open(f"{run}-copies/{name}/metadata.json").read()
    assert of_copy == open(f"{run}/checkpoints/{name}/metadata.json").read(), f"{run}: the copy of {name} lacks something"
saved = {name: json.load(open(f"{run}/checkpoints/{name}/metadata.json"))["validation_metrics"]
         for name in sorted(os.listdir(f"{run}/checkpoints"))}
best = os.readlink(f"{run}/best") if os.path.islink(f"{run}/best") else None
print(evaluations, best, json.load(open(f"{run}/complete.json"))["eval_loss_nats"])
for name, validation in saved.items():
    print(name, [validation[key] for key in ("eval_loss", "best_eval_loss", "best_eval_step", "is_best")])
PYTHON
}
compare() { # compare NAME ARGUMENT...
  local name=$1
  shift
  begin "whole-$name" "$@"
  stopped "parts-$name" "$@"
  outcome "whole-$name" > whole.txt
  outcome "parts-$name" > parts.txt
  diff whole.txt parts.txt || { echo "$name: $*"; exit 1; }
}
compare saves --steps 6 --eval-every 4 --save-every 2 --keep 1 --keep-best 1
compare last --steps 2 --eval-every 0 --save-every 1 --keep 1 --keep-best 1
compare plain --steps 4 --eval-every 2 --save-every 1 --keep 0
compare early --steps 12 --eval-every 2 --early-stop 2 --lr 0.2 --save-every 2 --keep 1 --keep-best 1
