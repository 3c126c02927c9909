#!/usr/bin/env bash
# `train` in bf16 beside itself in fp32: tokens a CPU second of models of three sizes.
#
# usage: scripts/compare/precisions.sh [--rounds N] [--cpus LIST] [--threads N] [--models LIST] [--steps N] OUT
#
#   --rounds N     interleaved repetitions of both (default: 5, the fewest of which anything is established)
#   --cpus LIST    processors to be pinned to (default: those with the least to do)
#   --threads N    of both (default: 1)
#   --models LIST  of 6x384,12x768,2x128, layers and width (default: all)
#   --steps N      optimizer steps a round, beside one that is not timed (default: 3, of 2x128 7)
#   OUT            writes OUT.json, from which the same command goes on, and OUT.md
#
# The models have a vocabulary of 32,000 and random weights. See README.md for the protocol.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

[[ ${1:-} != -h && ${1:-} != --help ]] || { print_usage; exit; }
(($# > 0)) || die "OUT is missing" "scripts/compare/precisions.sh --help"
build release train pretokenize pack
run_comparison precisions.py "$@"
