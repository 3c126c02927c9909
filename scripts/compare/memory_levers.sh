#!/usr/bin/env bash
# What each memory lever of train gives and costs: peak memory and time a step, one lever at a time and together.
#
# usage: scripts/compare/memory_levers.sh [MODEL] [STEPS] [BATCH] [SEQ]     (default: llama-15m 5 8 256)
#
# Trains the same steps with each lever and prints Markdown. Exits 1 when the levers that change no result end in
# other weights than the run without one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

model=${1:-llama-15m} steps=${2:-5} batch=${3:-8} seq=${4:-256}
bin=$(cd "${TRAINWRIGHT_BIN:-build/release/bin}" && pwd) || die "the tools are not built" "cmake --build --preset release"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
data=$PWD/examples/data/tinyshakespeare.txt
cd "$scratch"
"$bin/pretokenize" --quiet "$data" | "$bin/pack" --quiet --chunk 1024 -o shards/

run() {
  local name=$1
  shift
  "$bin/train" --quiet --model "$model" --steps "$steps" --seq "$seq" --save-every 0 --async-save off "$@" --out run
  mv run/metrics.jsonl "$name.jsonl"
  sha256sum < run/latest/model.safetensors > "$name.sha256"
  rm -r run
}
run none --batch "$batch"
run selective --batch "$batch" --checkpoint-activations selective
run full --batch "$batch" --checkpoint-activations full
run accumulation --batch 1 --accum "$batch"
run accumulation-and-full --batch 1 --accum "$batch" --checkpoint-activations full
for kind in selective full; do cmp -s none.sha256 $kind.sha256 || die "--checkpoint-activations $kind changes weights"; done
cmp -s accumulation.sha256 accumulation-and-full.sha256 || die "--checkpoint-activations full changes weights"

echo "$model, $steps steps of $batch x $seq tokens, load average $(cut -d' ' -f1 /proc/loadavg):"
echo
python3 - << 'PYTHON'
import json
import statistics

print("| lever | activations, MB | parts in all, MB | measured peak, MB | step, ms: median (lowest) |")
print("|---|---|---|---|---|")
for name in ("none", "selective", "full", "accumulation", "accumulation-and-full"):
    with open(f"{name}.jsonl", encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    times = [r["step_time_s"] * 1e3 for r in records if r["type"] == "step"][1:]
    memory = records[-1]["memory_bytes"]
    sizes = " | ".join(f"{memory[part] / 1e6:.0f}" for part in ("activations", "total", "peak"))
    print(f"| {name.replace('-', ' ')} | {sizes} | {statistics.median(times):.0f} ({min(times):.0f}) |")
PYTHON
