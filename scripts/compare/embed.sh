#!/usr/bin/env bash
# Embeds texts with `embed` and with sentence-transformers, and finds the nearest of a million vectors with `evaluate`, NumPy
# and faiss: time and memory, every contestant in processes of its own, interleaved.
#
# usage: scripts/compare/embed.sh [--rounds N] [--cpus LIST] [--modes LIST] [--works LIST] [--threads LIST]
#                                 [--texts N] [--rows N] [--queries N] [--data FOLDER [--prepare]] [--longest-answer S] OUT
#
#   --rounds N      of each contestant, in the other order every other round (default: 5, the fewest of which anything is
#                   established)
#   --cpus LIST     processors to be pinned to (default: those with the least to do)
#   --longest-answer S  seconds after which a peer has failed; compiling is in its first answer (default: 1800)
#   --modes LIST    of eager,compiled,max-autotune: PyTorch's contestants (default: all)
#   --works LIST    of embed,search (default: both)
#   --threads LIST  numbers of threads (default: 1,2)
#   --texts N       that are embedded (default: 200)
#   --rows N        of the corpus, of 384 numbers (default: 200000)
#   --queries N     of which the ten nearest rows are found (default: 1000)
#   --data FOLDER   keeps the model, the texts and the vectors for other runs; --prepare makes them and ends
#   OUT             writes OUT.json, from which the same command goes on, and OUT.md
#
# Exit status 1 when vectors differ by more than 1e-5, or what is found otherwise than by near-ties.
# PYTHON names a Python with scripts/compare/embed.requirements.txt. See embed_side_by_side.py for what is timed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

python=${PYTHON:-python3}
[[ ${1:-} != -h && ${1:-} != --help ]] || { print_usage; exit; }
"$python" -c 'import numpy, faiss, torch, transformers, sentence_transformers' 2> /dev/null ||
  die "$python lacks a peer" "see scripts/compare/embed.requirements.txt; PYTHON names another Python"
export PATH=$PWD/build/release/bin:$PATH HF_HUB_OFFLINE=1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$python" scripts/compare/embed_side_by_side.py --scratch "$scratch" "$@"
