#!/usr/bin/env bash
# Trains the family ten with `train` and its peers side by side: tokens/s, tokens a processor's second and peak memory.
#
# usage: scripts/compare/ten.sh [--rounds N] [--cpus LIST] [--models LIST] [--tokens LIST] [--contestants LIST] [--steps N]
#                               [--threads N] [--longest-answer S] OUT
#
#   --rounds N          interleaved repetitions of every contestant (default: 5, the fewest of which anything is established)
#   --cpus LIST         processors to be pinned to (default: those with the least to do)
#   --longest-answer S  seconds after which a peer has failed; compiling is in its first answer (default: 1800)
#   --models LIST       of ten-micro,ten-small, which read bytes: 1.6M and 15M parameters (default: both)
#   --tokens LIST       tokens of a sample (default: 512,2048,8192,32768); a step has 32,768 whatever its samples
#   --contestants LIST  of train,llama,eager,compiled,max-autotune,llama-eager,llama-compiled,llama-max-autotune,mamba2,scan,
#                       scan-eager,scan-compiled,scan-max-autotune (default: all)
#   --steps N           of a run, above 2: the first two are not timed (default: 5)
#   --threads N         of every contestant (default: 1)
#   OUT                 writes OUT.json, from which the same command goes on, OUT.md and OUT.svg
#
# Contestants of a whole step: train with a TEN and with a Llama of as many parameters; PyTorch, eager and compiled, with TEN
# from the same first weights on the same samples, its recurrence in chunks (torch_ten_chunked.py), and with that Llama
# (torch_models.py), so that what train gains can be compared with what it gains there; transformers' Mamba2 of as
# many parameters, in pieces of 8,192 tokens and with its layers computed again in longer samples, up to those that fit into
# 16 GB. That train's first loss is PyTorch's is checked: exit status 1 if not. Of the scan alone, forward and
# backward: train's kernels and that recurrence, eager and compiled. fp32. PYTHON names a Python with
# scripts/compare/ten.requirements.txt. See ten.py, ten_report.py, ten_models.py, torch_ten.py and torch_ten_loop.py.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

python=${PYTHON:-python3}
[[ ${1:-} != -h && ${1:-} != --help ]] || { print_usage; exit; }
"$python" -c 'import torch, transformers, safetensors' 2> /dev/null ||
  die "$python has no torch, transformers and safetensors" \
    "see scripts/compare/ten.requirements.txt; PYTHON names another Python"
kernel_speed=$PWD/build/release/tests/kernel_speed
[[ -x $kernel_speed ]] || die "$kernel_speed is missing" "cmake --build --preset release --target kernel_speed"
export HF_HUB_OFFLINE=1
run_comparison ten.py --kernel-speed "$kernel_speed" "$@"
