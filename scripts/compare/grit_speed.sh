#!/usr/bin/env bash
# Trains embeddings with `train --objective grit` and its peers side by side: useful tokens/s and peak memory.
#
# usage: scripts/compare/grit_speed.sh [--rounds N] [--cpus LIST] [--models LIST] [--lengths LIST] [--precisions LIST]
#                                      [--contestants LIST] [--steps N] [--batch N] [--accum N] [--threads N]
#                                      [--attention bb|cc] [--plain-ratio LIST] [--longest-answer S] OUT
#
#   --rounds N          interleaved repetitions of every contestant (default: 5, the fewest of which anything is established)
#   --cpus LIST         processors to be pinned to (default: those with the least to do)
#   --longest-answer S  seconds after which a peer has failed; compiling is in its first answer (default: 1800)
#   --models LIST       of llama-1m,6x384 (default: both)
#   --lengths LIST      of unlike,equal: lengths of texts spread so that more than half of what padding computes is padding,
#                       or all alike (default: both)
#   --precisions LIST   of fp32,bf16 (default: both)
#   --contestants LIST  of train,sentence-transformers,sentence-transformers-compiled,sentence-transformers-max-autotune,eager,
#                       compiled,max-autotune,eager-sorted,compiled-sorted,
#                       max-autotune-sorted (default: all)
#   --steps N           optimizer steps of a run, above 2: the first two are not timed (default: 5, of 6x384 4)
#   --batch N           queries of a micro-batch, each with a positive and a negative passage (default: 16, of
#                       6x384 8)
#   --accum N           micro-batches of a step (default: 4, of 6x384 2)
#   --threads N         of every contestant (default: 1)
#   --attention A       bb or cc: bidirectional (default) or causal
#   --plain-ratio LIST  as fp32=1.33,bf16=1.2: how much faster than its best peer plain training of such a model is
#                       (scripts/compare/train.sh), by which equal lengths are judged (default: they are not)
#   OUT                 writes OUT.json, from which the same command goes on, and OUT.md
#
# On two slow processors a round of one model, precision and kind of lengths takes six minutes, and compiling up to ten more, which
# are not counted.
#
# Contestants: train; a PyTorch loop with a GradCache around transformers' model, eager and compiled, its texts padded to the
# longest of a micro-batch, in the order they come or (unlike ones) sorted by length within a step, compiled by torch.compile's
# default and by max-autotune; sentence-transformers' CachedMultipleNegativesRankingLoss, in the same modes. All take the same
# records in the same steps from the same first weights, without dropout, with as many threads; that steps hold the same tokens and
# that the losses of the first agree is checked: exit status 1 if not.
# PYTHON names a Python with scripts/compare/grit.requirements.txt. See grit_speed.py, grit_speed_report.py, grit_order.py,
# torch_grit.py and torch_grit_loop.py.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

python=${PYTHON:-python3}
[[ ${1:-} != -h && ${1:-} != --help ]] || { print_usage; exit; }
"$python" -c 'import torch, transformers, safetensors' 2> /dev/null ||
  die "$python has no torch, transformers and safetensors" \
    "see scripts/compare/grit.requirements.txt; PYTHON names another Python"
export HF_HUB_OFFLINE=1
run_comparison grit_speed.py "$@"
