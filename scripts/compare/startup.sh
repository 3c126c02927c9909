#!/usr/bin/env bash
# Times how the tools start: `train` to its first step beside PyTorch, and each of the tools that need no torch.
#
# usage: scripts/compare/startup.sh [--rounds N] [--cpus LIST] OUT
#
#   --rounds N   interleaved repetitions (default: 5, the fewest of which anything is established)
#   --cpus LIST  processors to be pinned to (default: those with the least to do)
#   OUT          writes OUT.json, from which the same command goes on, and OUT.md
#
# PYTHON names a Python with torch and safetensors (default: python3). Takes a minute. See startup.py for what is measured.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

[[ ${1:-} != -h && ${1:-} != --help ]] || { print_usage; exit; }
(($# > 0)) || die "OUT is missing" "scripts/compare/startup.sh --help"
python=${PYTHON:-python3}
"$python" -c 'import torch, safetensors' 2> /dev/null || die "$python lacks torch or safetensors" "PYTHON names another Python"
ninja -C build/release train pretokenize pack ckpt-compress gpu-probe > /dev/null
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" scripts/compare/startup.py --bin "$PWD/build/release/bin" --work "$work" "$@"
