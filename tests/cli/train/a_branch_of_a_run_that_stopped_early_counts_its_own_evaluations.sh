# A branch of a run that --early-stop ended takes its steps: --early-stop counts from its first step on.
seq 400 | sed 's/$/ bottles of beer on the wall/' > text
tail -90 text > held
pretokenize -q text | pack -q --chunk 256 -o shards/
pretokenize -q held | pack -q --chunk 256 -o held-out/
ended() { # ended RUN STEP: by --early-stop
  local wanted="$2 early stop" got
  got=$(python3 -c 'import json, sys; end = json.load(sys.stdin); print(end["steps"], end["reason"])' < "$1/complete.json")
  test "$got" = "$wanted" || { echo "$1: '$got', not '$wanted'"; exit 1; }
}
evaluated() { # evaluated RUN STEP...: after these steps
  local wanted="${*:2}" got
  got=$(python3 -c '
import json, sys
print(*[record["step"] for record in map(json.loads, sys.stdin) if record["type"] == "eval"])' < "$1/metrics.jsonl")
  test "$got" = "$wanted" || { echo "$1: evaluated after '$got', not '$wanted'"; exit 1; }
}
# A learning rate that does nothing: no evaluation is better than the first.
train -q --model neox-tiny --data shards --eval-data held-out --seq 64 --batch 2 --lr 1e-30 --weight-decay 0 --schedule constant \
  --warmup 0 --threads 1 --steps 40 --eval-every 4 --early-stop 2 --save-every 3 --keep 0 --out run
ended run 8
# The evaluation after the parent's last step is the branch's first.
train -q --branch-from run --out branch
ended branch 16
evaluated branch 12 16
# Where the parent was not evaluated, the branch is, as a new run is.
train -q --branch-from run@6 --out between
ended between 12
evaluated between 6 8 12
