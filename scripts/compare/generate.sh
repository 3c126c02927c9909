#!/usr/bin/env bash
# Generates with `generate` and with transformers' generate() side by side: speed, memory, start-up, tokens.
#
# usage: scripts/compare/generate.sh [--rounds N] [--cpus LIST] [--modes LIST] [--threads LIST] [--batches LIST]
#                                    [--precisions LIST] [--tokens N] [--longest-answer S] OUT
#
#   --rounds N         interleaved repetitions of every contestant (default: 5, the fewest of which anything is established)
#   --cpus LIST        processors to be pinned to (default: those with the least to do)
#   --longest-answer S seconds after which a peer has failed; compiling is in its first answer (default: 1800)
#   --modes LIST       of eager,compiled,max-autotune: PyTorch's contestants (default: all)
#   --threads LIST     of every contestant (default: 1)
#   --batches LIST     sequences decoded together (default: 1,8)
#   --precisions LIST  of fp32,bf16 (default: both)
#   --tokens N         timed for each prompt, after the first (default: 64)
#   OUT                writes OUT.json, from which the same command goes on, and OUT.md
#
# The model is train.sh's Llama with random weights: 6 layers of width 384 and Mistral's vocabulary of 32,000. Both
# decode greedily from the same prompts of 32 tokens, transformers as it is and compiled. The ceiling is the
# time to read all weights but the embedding once a step at the bandwidth that gpu-probe measures in the same run.
# PYTHON names a Python with scripts/compare/requirements.txt; TRAINWRIGHT_TEST_DATA the folder of real data.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

[[ ${1:-} != -h && ${1:-} != --help ]] || { print_usage; exit; }
(($# > 0)) || die "OUT is missing" "scripts/compare/generate.sh --help"
python=${PYTHON:-python3}
"$python" -c 'import torch, transformers, sentencepiece' 2> /dev/null ||
  die "$python has no torch, transformers and sentencepiece" "see scripts/compare/requirements.txt; PYTHON names another Python"
export TRAINWRIGHT_TEST_DATA=${TRAINWRIGHT_TEST_DATA:?the folder with tokenizers/ and text/}
export PATH=$PWD/build/release/bin:$PATH
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$python" scripts/compare/generate_side_by_side.py --scratch "$scratch" "$@"
