#!/usr/bin/env bash
# Time and memory of a token that the family ten generates, up to 100,000 tokens, beside a Llama of as many parameters.
#
# usage: scripts/compare/ten_generation.sh [--model NAME] [--tokens LIST] [--kinds LIST] [--llama-tokens N]
#                                          [--rounds N] [--cpus LIST] [--threads N] OUT
#
#   --model NAME    ten-micro or ten-small, reading bytes (default: ten-micro)
#   --tokens LIST   how many tokens are generated (default: 1000,2000,5000,10000,20000,50000,100000)
#   --kinds LIST    of ten,llama (default: both); the Llama up to --llama-tokens
#   --llama-tokens N  (default: 20000)
#   --rounds N      interleaved repetitions (default: 5, the fewest of which anything is established)
#   --cpus LIST     processors to be pinned to (default: those with the least to do)
#   --threads N     (default: 1)
#   OUT             writes OUT.json, from which the same command goes on, OUT.md, OUT-time.svg and OUT-memory.svg
#
# The time of a token is what generating so many takes longer than the number before, over how many more there are.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

[[ ${1:-} != -h && ${1:-} != --help ]] || { print_usage; exit; }
run_comparison ten_generation.py "$@"
