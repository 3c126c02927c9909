#!/usr/bin/env bash
# Where a step of training goes, part by part, beside what each part could take at least on this machine.
#
# usage: scripts/compare/step_parts.sh [--rounds N] [--cpus LIST] [--models LIST] [--precisions LIST] [--steps N] OUT
#
#   --rounds N         interleaved repetitions of every precision (default: 5, the fewest of which anything is established)
#   --cpus LIST        processors to be pinned to, a thread on each (default: the one with the least to do)
#   --models LIST      of llama-6x384,llama-1m,smollm2-512,smollm2-2048,packed (default: all)
#   --precisions LIST  of fp32,bf16 (default: both)
#   --steps N          profiled steps of a run (default: 3)
#   OUT                writes OUT.json, from which the same command goes on, and OUT.md
#
# TRAINWRIGHT_TEST_DATA is the folder of real data. See step_parts.py for what is measured and counted.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

[[ ${1:-} != -h && ${1:-} != --help ]] || { print_usage; exit; }
(($# > 0)) || die "OUT is missing" "scripts/compare/step_parts.sh --help"
build release train pretokenize pack gpu-probe gemm_speed
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 scripts/compare/step_parts.py --build build/release --work "$work" \
  --data "${TRAINWRIGHT_TEST_DATA:?the folder with tokenizers/ and bench/}" "$@"
