#!/usr/bin/env bash
# Kills training of the family ten within samples of 32,768 tokens of one document; resumed, it must give the same bits.
#
# usage: scripts/compare/ten_kill.sh [--model NAME] [--tokens N] [--steps N] [--kills N] [OUT.md]
#
#   --model NAME  ten-micro or ten-small, reading bytes (default: ten-micro)
#   --tokens N    of a sample, one a step (default: 32768)
#   --steps N     of the run, each of which is saved (default: 6)
#   --kills N     at even shares of the time that the whole run took (default: 3)
#
# Each way of computing (whole samples; layers computed again; --tbptt 4096) is run whole, and again with kills. Exit status 1
# where weights, the state of the optimizer or losses differ in one bit, or nothing was killed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

[[ ${1:-} != -h && ${1:-} != --help ]] || { print_usage; exit; }
run_comparison ten_kill.py "$@"
