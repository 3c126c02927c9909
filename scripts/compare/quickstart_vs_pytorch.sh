#!/usr/bin/env bash
# Trains the quick start's model again with plain PyTorch and compares the validation loss.
#
# usage: scripts/compare/quickstart_vs_pytorch.sh [DIR]     (default: quickstart/, made by scripts/quickstart.sh)
#
# PYTHON names a Python (default: python3) with scripts/compare/requirements.txt, for instance
#   python3 -m venv venv && venv/bin/pip install -r scripts/compare/requirements.txt
#   PYTHON=venv/bin/python scripts/compare/quickstart_vs_pytorch.sh
#
# PyTorch computes in fp32 unless the processor multiplies bf16 itself: without that, its bf16 is some 20 times slower.
# Same initial weights, same tokens in the same order, same schedule and optimiser; see pytorch_loop.py. Prints one
# JSON object and exits 1 when the losses differ by 2 % or more. What each took is not compared, as one run of each on a machine
# that others use, too, establishes nothing: scripts/compare/train.sh measures speed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

root=$PWD
python=${PYTHON:-python3}
[[ $python != */* ]] || python=$(cd "$(dirname "$python")" && pwd)/$(basename "$python")
"$python" -c 'import torch, transformers' 2> /dev/null ||
  die "$python has no torch and transformers" "see scripts/compare/requirements.txt; PYTHON names another Python"
work=${1:-quickstart}
[[ -e $work/runs/quickstart/complete.json ]] || die "$work holds no complete run" "scripts/quickstart.sh $work"
cd "$work"
export PATH=$root/build/release/bin:$PATH
export OMP_WAIT_POLICY=passive  # as train sets it for itself: on a busy machine, spinning threads are slow ones
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"$python" - runs/quickstart/metrics.jsonl > "$scratch/plan.json" << 'PYTHON'
import json
import sys

records = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
print(json.dumps(next(record for record in records if record["type"] == "run_begin")["plan"]))
PYTHON
seed=$("$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["seed"])' "$scratch/plan.json")
run pack --cat --json shards/ > "$scratch/train.jsonl"
run pack --cat --json val/ > "$scratch/val.jsonl"
# One step at learning rate 0 writes the initial weights as a checkpoint.
run train --quiet --seed "$seed" --steps 1 --batch 1 --lr 0 --out "$scratch/init"
precision=fp32
if grep -qwE 'avx512_bf16|amx_bf16' /proc/cpuinfo; then precision=bf16; fi
run "$python" "$root/scripts/compare/pytorch_loop.py" --init "$scratch/init/latest" --plan "$scratch/plan.json" \
  --precision "$precision" --train "$scratch/train.jsonl" --val "$scratch/val.jsonl" > "$scratch/pytorch.json"
run evaluate --quiet --checkpoint runs/quickstart --data val/ > "$scratch/trainwright.json"

"$python" - "$scratch" runs/quickstart/metrics.jsonl << 'PYTHON'
import json
import sys

peer = json.load(open(sys.argv[1] + "/pytorch.json"))
ours = json.load(open(sys.argv[1] + "/trainwright.json"))
records = [json.loads(line) for line in open(sys.argv[2], encoding="utf-8")]
begin = next(record for record in records if record["type"] == "run_begin")
steps = [record for record in records if record["type"] == "step"]
before = next(record for record in records if record["type"] == "eval" and record["step"] == 0)
difference = ours["loss_nats"] / peer["validation_loss_nats"] - 1
print(json.dumps({
    "precision": {"trainwright": begin["plan"]["precision"], "pytorch": peer["precision"]},
    "steps": peer["steps"], "tokens": peer["tokens"],
    "same_tokens": peer["tokens"] == steps[-1]["tokens_seen"],
    "before_nats": {"trainwright": before["loss_nats"], "pytorch": peer["validation_loss_before_nats"]},
    "after_nats": {"trainwright": ours["loss_nats"], "pytorch": peer["validation_loss_nats"]},
    "relative_difference": difference,
    "torch": peer["torch"],
}, indent=2))
if peer["tokens"] != steps[-1]["tokens_seen"] or abs(difference) >= 0.02:
    sys.exit("the runs disagree")
PYTHON
