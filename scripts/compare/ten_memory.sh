#!/usr/bin/env bash
# Peak memory of training the family ten against the length of a sample, and what --dry-run foretells.
#
# usage: scripts/compare/ten_memory.sh [--model NAME] [--tokens LIST] [--ways LIST] OUT
#
#   --model NAME    ten-micro or ten-small, reading bytes, or ten-small-32k with the tokens of GPT-2: minutes a step
#                   (default: ten-micro)
#   --tokens LIST   tokens of the one sample of a step (default: 2048,8192,32768,65536,131072,262144; ten-small-32k: 32768)
#   --ways LIST     of plain,full,tbptt,llama (default: plain,full,tbptt; ten-small-32k: full): nothing dropped; layers
#                   computed again in the backward pass; besides, the gradient cut every 2,048 tokens; a Llama of as many
#                   parameters, layers computed again (not of ten-small-32k)
#   OUT             OUT.json is where each length is added when it has been run, OUT.md and OUT.svg the report of all it has
#
# Lengths that OUT.json has are not repeated. Exit status 1 where a dry run is off by over 10 %.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

[[ ${1:-} != -h && ${1:-} != --help ]] || { print_usage; exit; }
run_comparison ten_memory.py "$@"
