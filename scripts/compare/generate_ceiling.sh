#!/usr/bin/env bash
# How near generation comes to what this machine could: a step of decoding beside reading what it must read, and multiplying.
#
# usage: scripts/compare/generate_ceiling.sh [--rounds N] [--cpus LIST] [--models LIST] [--precisions LIST] [--batches LIST]
#                                          [--quants LIST] OUT
#
#   --rounds N         interleaved repetitions of every precision (default: 5, the fewest of which anything is established)
#   --cpus LIST        processors to be pinned to, a thread on each (default: the one with the least to do)
#   --models LIST      of llama-6x384,smollm2 (default: both)
#   --precisions LIST  of fp32,bf16 (default: both)
#   --batches LIST     sequences at once (default: 1,8,32)
#   --quants LIST      of none,int8,nf4 (default: none)
#   OUT                writes OUT.json, from which the same command goes on, and OUT.md
#
# TRAINWRIGHT_TEST_DATA is the folder of real data. See generate_ceiling.py for what is measured and counted.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

[[ ${1:-} != -h && ${1:-} != --help ]] || { print_usage; exit; }
(($# > 0)) || die "OUT is missing" "scripts/compare/generate_ceiling.sh --help"
build release train generate pretokenize pack gpu-probe gemm_speed
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 scripts/compare/generate_ceiling.py --build build/release --work "$work" \
  --data "${TRAINWRIGHT_TEST_DATA:?the folder with tokenizers/ and bench/}" "$@"
