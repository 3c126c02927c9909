#!/usr/bin/env bash
# Runs of `train` with each optimizer on one small text: the losses that they end at.
#
# usage: scripts/compare/optimizers.sh [--bin DIR] [--steps N] TEXT_FILE WORK_FOLDER
#
#   --bin DIR   folder of the tools (default: build/release/bin)
#   --steps N   of each run (default: 200)
#
# Prints a table: the mean loss in nats a token of the first and the last tenth of each run.
set -euo pipefail
bin=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/build/release/bin steps=200
while (($#)); do
  case $1 in
    --bin) bin=$2; shift 2 ;;
    --steps) steps=$2; shift 2 ;;
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" | sed '$d'; exit 0 ;;
    -*) echo "optimizers.sh: unknown argument $1" >&2; exit 2 ;;
    *) break ;;
  esac
done
[[ $# -eq 2 ]] || { echo "optimizers.sh: name a text and a folder for its files" >&2; exit 2; }
text=$(realpath "$1")
mkdir -p "$2" && cd "$2"
export PATH=$bin:$PATH
[[ -d shards ]] || pretokenize -q "$text" | pack -q --chunk 512 -o shards
runs=()
run() {  # name, options
  local name=$1
  shift
  [[ -f $name/metrics.jsonl ]] || train -q --progress never --data shards --model llama-1m --seq 128 --batch 16 --steps "$steps" \
    --seed 1 --save-every 0 --save-model-only --log-every 1 --out "$name" "$@" 2> "$name.err" || { cat "$name.err" >&2; exit 1; }
  runs+=("$name|$*")
}
run adamw
run adamw8bit --optimizer adamw8bit
run muon --optimizer muon
run muon-original --optimizer muon --optimizer-option match_rms_adamw=0 --optimizer-option adamw_factor=0.15 --lr 0.02
run lion --optimizer lion
run lion-at-adamw --optimizer lion --lr 3e-3
run lion-tenth --optimizer lion --lr 3e-4
run sgd --optimizer sgd
run sgd-at-adamw --optimizer sgd --lr 3e-3
run sgd-nesterov --optimizer sgd --optimizer-option nesterov=1
python3 - "${runs[@]}" << 'PYTHON'
import json, statistics, sys
print("| options | lr | first tenth | last tenth |\n|---|---|---|---|")
for name, options in (run.split("|") for run in sys.argv[1:]):
    steps = [record for record in map(json.loads, open(f"{name}/metrics.jsonl")) if record["type"] == "step"]
    tenth = max(1, len(steps) // 10)
    first, last = (statistics.mean(step["loss_nats"] for step in part) for part in (steps[:tenth], steps[-tenth:]))
    peak = max(step["lr"] for step in steps)
    print(f"| `{options or '--optimizer adamw'}` | {peak:.2g} | {first:.3f} | {last:.3f} |")
PYTHON
