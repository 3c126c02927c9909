#!/usr/bin/env bash
# What a checkpoint costs the training thread: written in the background beside written in the foreground.
#
# usage: scripts/compare/async_save.sh [MODEL] [STEPS] [SAVE_EVERY] [ROUNDS]     (default: llama-15m 48 12 3)
#
# Trains the same steps with --async-save off and on, in turns, and prints Markdown: stall, back-pressure, write time and
# processor time of a save, a plain copy of as many bytes beside the snapshot, and times of steps with and without a
# save under way. Exits 1 when the files of the two differ.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

model=${1:-llama-15m} steps=${2:-48} every=${3:-12} rounds=${4:-3}
bin=$(cd "${TRAINWRIGHT_BIN:-build/release/bin}" && pwd) || die "the tools are not built" "cmake --build --preset release"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
data=$PWD/examples/data/tinyshakespeare.txt
cd "$scratch"

"$bin/pretokenize" --quiet "$data" | "$bin/pack" --quiet --chunk 1024 -o shards/
for ((round = 1; round <= rounds; ++round)); do
  for mode in off on; do
    cat /proc/loadavg > "load.$mode.$round"
    "$bin/train" --quiet --model "$model" --steps "$steps" --batch 1 --seq 128 --save-every "$every" --keep 1 \
      --async-save "$mode" --out "run.$mode" --summary "summary.$mode.$round.json"
    mv "run.$mode/metrics.jsonl" "metrics.$mode.$round"
    sha256sum < "run.$mode/latest/model.safetensors" > "hash.$mode.$round"
    sha256sum < "run.$mode/latest/trainwright_state.safetensors" >> "hash.$mode.$round"
    rm -r "run.$mode"
  done
  cmp -s "hash.off.$round" "hash.on.$round" || die "the checkpoints of --async-save off and on differ"
done

python3 - "$rounds" << 'PYTHON'
import ctypes
import json
import statistics
import sys
import time

rounds = int(sys.argv[1])


def records(mode, kind):
    for number in range(1, rounds + 1):
        with open(f"metrics.{mode}.{number}", encoding="utf-8") as file:
            yield from (record for record in map(json.loads, file) if record["type"] == kind)


def spread(values, scale=1e3):
    values = sorted(values)
    if not values:
        return "-"
    return f"{statistics.median(values) * scale:.1f} ({values[0] * scale:.1f} to {values[-1] * scale:.1f})"


begin = next(records("on", "run_begin"))
copied = 12 * begin["parameters"]  # fp32 weights and two moments
source, target = (ctypes.create_string_buffer(copied) for _ in range(2))
ctypes.memset(source, 1, copied)
copies = []
for _ in range(5):
    start = time.perf_counter()
    ctypes.memmove(target, source, copied)
    copies.append(time.perf_counter() - start)

print("| ms: median (lowest to highest) | foreground | background |")
print("|---|---|---|")
for name, field in (("training thread stalled by a save", "stall_s"), ("of these, waiting for the save before", "wait_s"),
                    ("of these, copying weights and moments", "snapshot_s"), ("writing, wall time", "write_time_s"),
                    ("writing, processor time of the writer", "writer_cpu_s")):
    print(f"| {name} |", " | ".join(spread([r[field] for r in records(m, "checkpoint")]) for m in ("off", "on")), "|")
for name, saving in (("step, no save under way", False), ("step during a save", True)):
    print(f"| {name} |", " | ".join(spread([r["step_time_s"] for r in records(m, "step") if r["saving"] == saving
                                             and r["step"] > 2]) for m in ("off", "on")), "|")
walls = {m: [json.load(open(f"summary.{m}.{n}.json"))["wall_time_s"] for n in range(1, rounds + 1)] for m in ("off", "on")}
print("| whole run, s |", " | ".join(spread(walls[m], 1) for m in ("off", "on")), "|")
loads = {m: [open(f"load.{m}.{n}").read().split()[0] for n in range(1, rounds + 1)] for m in ("off", "on")}
print("| load average before a run |", " | ".join(", ".join(loads[m]) for m in ("off", "on")), "|")
first = [min((r for r in records("on", "checkpoint")), key=lambda r: r["step"])["snapshot_s"]]
print()
print(f"{begin['parameters'] / 1e6:.1f} million parameters: a snapshot copies {copied / 1e6:.0f} MB. A plain memmove of as "
      f"many bytes by one thread, into memory used before: {spread(copies)} ms. The first snapshot of "
      f"a run, into memory that the run touched ahead: {spread(first)} ms.")
PYTHON
