#!/usr/bin/env bash
# What the family ten learns: numbers recalled after a gap, and the loss by position in long texts, beside a Llama.
#
# usage: scripts/compare/ten_learning.sh [--parts LIST] [--minutes N] [--lags LIST] [--starts LIST] [--lr X] [--shape D,L,K]
#                                        [--short-steps N] [--steps N] [--tokens N] [--text FILE] [--work FOLDER] OUT
#
#   --parts LIST   of recall,positions (default: both)
#   --minutes N    of training for each recall model (default: 20; nine models)
#   --lags LIST    bytes between a number and the question (default: 100,1000,10000)
#   --starts LIST  of lru,compat,ring,far (default: all but far): ring is lru with moduli from 0.999 on, far from 0.9998 on
#   --lr X         learning rate of the recall models (default: 2e-3)
#   --shape D,L,K  width, layers and eigenstates of the recall models (default: 192,4,64; one of 64,2,64 takes many more
#                  steps in its time)
#   --short-steps N  of training for TEN and for Llama, the same, on long text in 16 samples of 2,048 bytes each (default: 300)
#   --steps N      of going on with samples of --tokens, one a step (default: 12: attention makes Llama's slow)
#   --tokens N     of these samples (default: 32768)
#   --text FILE    long text (default: the King James Bible of the Debian package bible-kjv-text, if `bible` prints it, and
#                  then Shakespeare; else Shakespeare alone)
#   --work FOLDER  keeps runs: another call goes on with those that were stopped, and repeats none that is complete
#   OUT            OUT.md, OUT-recall.svg and OUT-positions.svg
#
# All models have at most 2M parameters and read bytes. Recall: a two-digit number, points, and the question; both starts of
# decays (--ten-init lru and compat), for each lag a model; Wilson's intervals. Positions: TEN and Llama of as many parameters
# on the same samples in the same order; the loss of held-out texts by the position of the byte, from 1 to --tokens. Whatever
# comes out is reported.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

[[ ${1:-} != -h && ${1:-} != --help ]] || { print_usage; exit; }
run_comparison ten_learning.py "$@"
