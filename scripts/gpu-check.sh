#!/usr/bin/env bash
# Checks and measures the CUDA backend on a machine with a GPU, from a build made elsewhere, step by step.
#
# usage: scripts/gpu-check.sh --bundle FILE.tar.xz [--build DIR]    here: packs tools, tests and plugins of build/cuda
#        python3 -W ignore -m tarfile -e FILE.tar.xz                there: makes the folder gpu-check; or tar -xf, where xz is
#        gpu-check/gpu-check.sh [OPTION]...                         there
#
#   --out DIR          steps.jsonl, one line a step as it ends, report.md and traces (default: gpu-check-out); all else is
#                      written to DIR.work and stays there
#   --only STEP,...    these steps alone
#   --skip STEP,...    all but these
#   --deadline SECONDS begin nothing, and go on with nothing, after so long
#   --list             the steps that --only and --skip leave, the most seconds that each may take, what they are, and the sum
#   --dry-run          the same command lines on the CPU, with tiny sizes
#   --dry-run-device D or on what the build's engines take for device D: a stand-in for a GPU
#   --build DIR        the build to use (default: the bundle, or build/cuda)
#
# Run again with the same --out it goes on where it stopped: steps that have ended are not repeated, whatever came of them. The
# order is by worth: which machine it is, three steps of every family, the GPU's tests, the CPU's losses, also of each optimizer,
# adapter and way to save memory, then speeds, graphs and fp8, reruns, and the sanitizers. There it needs an NVIDIA driver, the
# PyPI torch of the version that the build was made with (found by python3, or named by TRAINWRIGHT_TORCH_DIR), and no network or
# compiler.
#
# A leased machine is sent 64 MiB at once, the tracked files of the clone with them: a bundle is refused that is larger than what
# these, uncompressed, leave. They have 25 MiB; the bundle of the release build, which has no CUDA plugin and is for --dry-run,
# takes half of the rest.
#
# Exit 0: all steps passed or are not available there, 1: one failed or was not come to, 2: wrong usage, 5: no GPU, nothing run.
set -euo pipefail
here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
for argument in "$@"; do
  case $argument in
    -h | --help) awk 'NR > 1 && !/^#/ {exit} NR > 1 {sub(/^# ?/, ""); print}' "$here/gpu-check.sh"; exit 0 ;;
  esac
done
exec python3 -B "$here/gpu_check/main.py" "$@"
