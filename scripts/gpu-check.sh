#!/usr/bin/env bash
# Checks the CUDA backend on a machine with a GPU, from a build made elsewhere, and writes what it found.
#
# usage: scripts/gpu-check.sh --bundle FILE.tar.zst      here: packs tools, tests and plugin of build/cuda
#        ./gpu-check.sh [--out FOLDER] [--quick]         there: from the unpacked bundle
#
# There it needs an NVIDIA driver, the PyPI torch of the version that the build was made with (found by python3, or named
# by TRAINWRIGHT_TORCH_DIR), zstd's runtime libraries and no network or compiler. One command runs the GPU tests,
# compute-sanitizer's memcheck and racecheck where it is installed (not with --quick), gpu-probe, a short training on the
# CPU and on the GPU side by side, the speed of every operator beside torch's own, and training speeds by preset. It writes
# gpu-check-DATE.md, .json and -gpu-probe.json. Exit 0: all passed, 1: something failed, 5: no GPU, and nothing was run.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

die() { printf 'gpu-check: error: %s\n' "$1" >&2; [[ $# -lt 2 ]] || printf 'gpu-check: hint: %s\n' "$2" >&2; exit "${3:-2}"; }
usage() { awk 'NR > 1 && !/^#/ {exit} NR > 1 {sub(/^# ?/, ""); print}' "$here/gpu-check.sh"; }

tools=(train evaluate generate gpu-probe pretokenize pack)
engines=({train,evaluate,generate,gpu-probe}-engine libtrainwright_cuda.so)
tests=(device_test nn_test optim_test train_test)

make_bundle() {
  local file=$1 build=$here/../build/cuda folder
  folder=$(mktemp -d)
  trap "rm -rf '$folder'" EXIT
  mkdir -p "$folder/gpu-check/bin" "$folder/gpu-check/libexec/trainwright" "$folder/gpu-check/tests" "$folder/gpu-check/lib"
  local name library
  for name in "${tools[@]/#/bin/}" "${engines[@]/#/libexec/trainwright/}"; do
    [[ -e $build/$name ]] || die "$build/$name is not built" "cmake --preset cuda && cmake --build --preset cuda"
    strip -o "$folder/gpu-check/$name" "$build/$name"
  done
  for name in "${tests[@]}" kernel_speed; do strip -o "$folder/gpu-check/tests/$name" "$build/tests/$name"; done
  # The small libraries of the system that the other machine may lack; torch and CUDA are its own.
  for name in "$build/libexec/trainwright/train-engine" "$build/bin/pretokenize" "$build/tests/nn_test"; do
    ldd "$name" | awk '/=> \/(usr\/)?lib/ {print $3}'
  done | sort -u | grep -vE '/(libc|libm|libdl|libpthread|librt|libutil|libgomp|ld-linux[^/]*|libcu[^/]*|libtorch[^/]*|libc10[^/]*)\.so' |
    while read -r library; do cp -L "$library" "$folder/gpu-check/lib/"; done
  cp "$here/gpu-check.sh" "$folder/gpu-check/"
  cp "$here/../examples/data/tinyshakespeare.txt" "$folder/gpu-check/"
  tar -C "$folder" --sort=name --owner=0 --group=0 -cf - gpu-check | zstd -q -10 -f -o "$file"
  printf 'gpu-check: %s, %d bytes\n' "$file" "$(stat -c %s "$file")"
}

out=. quick=0
while (($#)); do
  case $1 in
    --bundle) [[ $# -ge 2 ]] || die '--bundle needs a file name'; make_bundle "$2"; exit 0 ;;
    --out) [[ $# -ge 2 ]] || die '--out needs a folder'; out=$2; shift 2 ;;
    --quick) quick=1; shift ;;
    -h | --help) usage; exit 0 ;;
    *) die "unknown argument $1" 'gpu-check.sh --help' ;;
  esac
done

[[ -x $here/bin/train ]] || die 'this is no unpacked bundle' 'make one with scripts/gpu-check.sh --bundle FILE.tar.zst'
if ! ls /dev/nvidia[0-9]* > /dev/null 2>&1 || ! command -v nvidia-smi > /dev/null || ! nvidia-smi -L > /dev/null 2>&1; then
  echo 'gpu-check: no GPU: NOT RUN' >&2
  exit 5
fi

torch=${TRAINWRIGHT_TORCH_DIR:-$(python3 -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])')} ||
  die 'python3 finds no torch' 'install torch 2.11.0 for CUDA 13, or name its folder by TRAINWRIGHT_TORCH_DIR'
[[ -e $torch/lib/libtorch_cpu.so ]] || torch=$torch/torch
[[ -e $torch/lib/libtorch_cuda.so ]] || die "$torch/lib holds no libtorch_cuda.so" 'a CUDA build of torch is needed'
cuda_libraries=$(printf '%s:' "$torch"/../nvidia/*/lib)
export LD_LIBRARY_PATH=$torch/lib:$cuda_libraries$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export TRAINWRIGHT_CUDA_PLUGIN=$here/libexec/trainwright/libtrainwright_cuda.so

mkdir -p "$out"
out=$(cd "$out" && pwd)
date=$(date -u +%Y-%m-%d-%H%M)
report=$out/gpu-check-$date.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gpu=$(nvidia-smi --query-gpu=name,driver_version,clocks.max.sm --format=csv,noheader -i 0)
failed=0 entries=()

# check NAME COMMAND...: runs it, notes pass or fail in both reports.
check() {
  local name=$1 status=0 result=passed
  shift
  "$@" > "$work/log" 2>&1 || status=$?
  if ((status)); then result="FAILED (exit $status)" failed=1; fi
  printf '| %s | %s |\n' "$name" "$result" | tee -a "$report"
  if ((status)); then { echo; tail -n 40 "$work/log" | sed 's/^/    /'; echo; } >> "$report"; fi
  entries+=("$(printf '{"check": "%s", "exit_status": %d}' "$name" "$status")")
}

# field FILE NAME [LINE]: a number of the last step of a metrics file.
field() { python3 -c 'import json, sys
steps = [r for r in map(json.loads, open(sys.argv[1])) if r["type"] == "step"]
print(steps[-1][sys.argv[2]])' "$1" "$2"; }

{ echo "# Trainwright on a GPU, $date"; echo; echo "$gpu; torch in use: $(basename "$(dirname "$torch")")"; echo; echo '| check | result |'; echo '|---|---|'; } > "$report"
for name in "${tests[@]}"; do check "$name" "$here/tests/$name"; done
if ((!quick)) && command -v compute-sanitizer > /dev/null; then
  for tool in memcheck racecheck; do
    check "compute-sanitizer $tool, operators" compute-sanitizer --tool "$tool" --error-exitcode 1 "$here/tests/nn_test" \
      --gtest_filter='Devices/OpsTest.*cuda*'
  done
else
  printf '| compute-sanitizer | NOT RUN |\n' | tee -a "$report"
fi

check 'gpu-probe' bash -c '"$0" --json --require-gpu --out "$1" > "$2"' "$here/bin/gpu-probe" "$work" "${report%.md}-gpu-probe.json"

"$here/bin/pretokenize" "$here/tinyshakespeare.txt" | "$here/bin/pack" --chunk 32768 -o "$work/shards"
short=(--data "$work/shards" --model llama-1m --steps 50 --seed 1 --log-every 50 --mixed-precision no --progress never)
check 'training on the CPU' "$here/bin/train" "${short[@]}" --device cpu --out "$work/cpu"
check 'training on the GPU' "$here/bin/train" "${short[@]}" --device cuda --out "$work/cuda"
check 'equal losses after 50 steps, 1 %' python3 -c 'import sys
a, b = map(float, sys.argv[1:]); print(a, b); sys.exit(not abs(a - b) <= 0.01 * a)' \
  "$(field "$work/cpu/metrics.jsonl" loss_nats || echo nan)" "$(field "$work/cuda/metrics.jsonl" loss_nats || echo nan)"

{ echo; echo "Operators, bf16, beside torch's own; GB/s counts the bytes that the maths must move at least:"; echo; } | tee -a "$report"
kernels='[]'
if "$here/tests/kernel_speed" --device cuda --precision bf16 --summary "$work/kernels.json" > "$work/kernels" 2> "$work/log"; then
  sed 's/^/    /' "$work/kernels" | tee -a "$report"
  kernels=$(python3 -c 'import json, sys; print(json.dumps(json.load(open(sys.argv[1]))["operators"]))' "$work/kernels.json")
else
  failed=1
  sed 's/^/    FAILED: /' "$work/log" | tee -a "$report"
fi
{ echo; echo 'Training speed, bf16; MFU counts 6 FLOP a parameter and token, attention left out, over 989 TFLOP/s (H100, H200).'; echo
  echo '| preset | tokens/s | MFU |'; echo '|---|---|---|'; } | tee -a "$report"
for preset in llama-15m llama-60m llama-125m llama-350m; do
  "$here/bin/train" --data "$work/shards" --model "$preset" --steps 60 --log-every 20 --mixed-precision bf16 --device cuda \
    --progress never --out "$work/$preset" > "$work/log" 2>&1 || { printf '| %s | not run: %s | |\n' "$preset" "$(tail -n 1 "$work/log")" | tee -a "$report"; continue; }
  python3 - "$preset" "$work/$preset/metrics.jsonl" << 'PYTHON' | tee -a "$report"
import json, sys
records = [json.loads(line) for line in open(sys.argv[2])]
parameters = next(r["parameters"] for r in records if r["type"] == "run_begin")
tokens_per_s = [r for r in records if r["type"] == "step"][-1]["tokens_per_s"]
print(f"| {sys.argv[1]} | {tokens_per_s:,.0f} | {6 * parameters * tokens_per_s / 989e12:.1%} |")
PYTHON
done
(IFS=,; printf '{"schema": "trainwright.gpu-check/1", "date": "%s", "gpu": "%s", "checks": [%s], "operators": %s}\n' "$date" "$gpu" "${entries[*]}" "$kernels") > "${report%.md}.json"
printf 'gpu-check: %s\n' "$report"
exit "$failed"
