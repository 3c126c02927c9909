#!/usr/bin/env bash
# Trains embeddings with `train --objective grit` and its peers side by side: useful tokens/s and peak memory.
#
# usage: scripts/compare/grit_speed.sh [--rounds N] [--steps N] [--batch N] [--accum N] [--threads N] [--models LIST]
#                                      [--lengths LIST] [--precisions LIST] [--attention bb|cc] [--no-compile]
#                                      [--no-sentence-transformers] [OUT.md]
#
#   --rounds N         interleaved repetitions of every contestant (default: 3)
#   --steps N          optimizer steps of a run, above 2: the first two are not timed (default: 12)
#   --batch N          queries of a micro-batch (default: 16)
#   --accum N          micro-batches of a step (default: 8)
#   --threads N        of every contestant (default: as many as there are processors)
#   --models LIST      of llama-1m,6x384 (default: both)
#   --lengths LIST     of unlike,equal: lengths of texts spread so that half of what padding computes is padding, or all
#                      alike (default: both)
#   --precisions LIST  of fp32,bf16 (default: both)
#   --attention A      bb or cc: bidirectional (default) or causal
#   --no-compile       leave out torch.compile
#   --no-sentence-transformers
#                      leave out sentence-transformers' CachedMultipleNegativesRankingLoss
#   OUT.md             where the report goes (default: standard output)
#
# Contestants: train; a PyTorch loop with a GradCache around transformers' model, eager and compiled, its texts padded to the
# longest of a micro-batch, in the order they come or (unlike ones) sorted by length; sentence-transformers. All have the same first
# weights, records, micro-batches and threads.
# PYTHON names a Python with scripts/compare/grit.requirements.txt. See torch_grit.py, torch_grit_loop.py and grit_speed.py.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

python=${PYTHON:-python3}
"$python" -c 'import torch, transformers, safetensors' 2> /dev/null ||
  die "$python has no torch, transformers and safetensors" \
    "see scripts/compare/grit.requirements.txt; PYTHON names another Python"
export PATH=$PWD/build/release/bin:$PATH HF_HUB_OFFLINE=1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$python" scripts/compare/grit_speed.py --scratch "$scratch" "$@"
