#!/usr/bin/env bash
# Does the optimised configuration of rejection fine-tuning keep the baseline's accuracy? Tunes one small model by the presets
# rft-baseline and rft-fast, on the same samples, and asks both the same questions.
#
# usage: scripts/compare/rft_accuracy.sh [--labelled N] [--tuned N] [--questions N] [--steps N] [--seeds N] [OUT.md]
#
#   --labelled N   questions that the model learned to answer before (default: 2000)
#   --tuned N      other questions that it is tuned on (default: 1920, whose 3 epochs are whole steps of both presets)
#   --questions N  that nothing was trained on, which are asked (default: 1000)
#   --steps N      of the model before it is tuned, of 16 samples (default: 300, which leave tuning something to do)
#   --seeds N      tunings by each preset (default: 3)
#
# The questions are those of scripts/make_units.py: conversions of units, of which no two splits share one. The model is llama-1m
# on bytes, and answers greedily. Accuracy is that of evaluate --metric answers, with Wilson's 95 % intervals. Exit status 1 where
# the mean of rft-fast is below the interval of rft-baseline's: the lines of the guide promise that accuracy is kept.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

[[ ${1:-} != -h && ${1:-} != --help ]] || { print_usage; exit; }
run_comparison rft_accuracy.py "$@"
