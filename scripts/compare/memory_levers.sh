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
run offload --batch "$batch" --offload activations --offload-dir .
run offload-gradients --batch "$batch" --offload gradients --offload-dir .
run full-and-offload --batch "$batch" --checkpoint-activations full --offload activations --offload-dir .
run bf16-states --batch "$batch" --optimizer-states bf16
run accumulation --batch 1 --accum "$batch"
run accumulation-and-full --batch 1 --accum "$batch" --checkpoint-activations full
run accumulation-full-and-bf16-states --batch 1 --accum "$batch" --checkpoint-activations full --optimizer-states bf16
run all --batch 1 --accum "$batch" --checkpoint-activations full --offload all --offload-dir . \
  --optimizer-states bf16
same() { cmp -s "$1.sha256" "$2.sha256" || die "the weights after '$2' are not those after '$1'"; }
for name in selective full offload offload-gradients full-and-offload; do same none $name; done
same accumulation accumulation-and-full
same accumulation-full-and-bf16-states all

echo "$model, $steps steps of $batch x $seq tokens, load average $(cut -d' ' -f1 /proc/loadavg):"
echo
python3 - << 'PYTHON'
import json
import statistics

print("| lever | moments, MB | gradients, MB | activations, MB | parts in all, MB | measured peak, MB | parts / peak | step, ms: median (lowest) | moved a step, MB out + in, ms |")
print("|---|---|---|---|---|---|---|---|---|")
for name in ("none", "selective", "full", "offload", "offload-gradients", "full-and-offload", "bf16-states", "accumulation", "accumulation-and-full",
             "accumulation-full-and-bf16-states", "all"):
    with open(f"{name}.jsonl", encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    times = [r["step_time_s"] * 1e3 for r in records if r["type"] == "step"][1:]
    memory = records[-1]["memory_bytes"]
    sizes = " | ".join(f"{memory[part] / 1e6:.0f}" for part in ("optimizer", "grads", "activations", "total", "peak"))
    share = 100 * memory["total"] / memory["peak"]
    moved, steps = records[-1].get("offload"), len(times) + 1
    offload = "-"
    if moved:
        out, back = (moved[way] / steps / 1e6 for way in ("out_bytes", "in_bytes"))
        offload = f"{out:.0f} + {back:.0f}, {moved['time_s'] / steps * 1e3:.0f}"
    print(f"| {name.replace('-', ' ')} | {sizes} | {share:.0f} % | {statistics.median(times):.0f} ({min(times):.0f}) | {offload} |")
PYTHON
