#!/usr/bin/env bash
# Trains two models with `train` and with plain PyTorch, eager and compiled, side by side: speed, memory, losses.
#
# usage: scripts/compare/train.sh [--rounds N] [--cpus LIST] [--threads LIST] [--steps N] [--models LIST] [--precisions LIST]
#                               [--peers LIST] [--modes LIST] [--losses [N]] [--longest-answer S] OUT
#
#   --rounds N         interleaved repetitions of every contestant (default: 5, the fewest of which anything is established)
#   --cpus LIST        processors to be pinned to (default: those with the least to do)
#   --longest-answer S seconds after which a peer has failed; compiling is in its first answer (default: 1800)
#   --threads LIST     of every contestant (default: 1)
#   --steps N          optimizer steps a round, beside three that are not timed (default: 5)
#   --models LIST      of nanogpt,llama (default: both)
#   --precisions LIST  of fp32,bf16 (default: both)
#   --peers LIST       of pytorch,hf (default: pytorch). pytorch: a plain loop, and ours in bf16 beside ours in fp32. hf: of the Llama
#                      Hugging Face's Trainer, and `evaluate` beside its evaluation
#   --modes LIST       of eager,compiled,max-autotune: in which peers run (default: all)
#   --losses [N]       compare losses of N steps (default: 50) too, with two more loops: one sums the gradients' norm in
#                      float64, as train does, one computes everything in float64
#   OUT                writes OUT.json, from which the same command goes on, and OUT.md
#
# Both models have 6 layers of width 384 and Mistral's vocabulary of 32,000; a step is 2,048 tokens. All contestants
# have the same initial weights, tokens, order, optimiser and schedule, and as many threads.
# PYTHON names a Python with scripts/compare/requirements.txt; TRAINWRIGHT_TEST_DATA the folder of real data. See
# torch_models.py, torch_train.py, hf_trainer.py and train_side_by_side.py.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh
# shellcheck source=scripts/compare/one_document.sh
source scripts/compare/one_document.sh

[[ ${1:-} != -h && ${1:-} != --help ]] || { print_usage; exit; }
(($# > 0)) || die "OUT is missing" "scripts/compare/train.sh --help"
python=${PYTHON:-python3}
"$python" -c 'import torch, safetensors' 2> /dev/null ||
  die "$python has no torch and safetensors" "see scripts/compare/requirements.txt; PYTHON names another Python"
data=${TRAINWRIGHT_TEST_DATA:?the folder with tokenizers/ and bench/}
export PATH=$PWD/build/release/bin:$PATH
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

one_document_shards "$python" "$data" "$scratch"
# evaluate is timed by the difference of both. HF Trainer stays alive, and is timed by the first alone: whole batches of it.
for evaluation in evaluation:60000 evaluation_few:15000; do
  head -c "${evaluation#*:}" "$scratch/text" |
    pretokenize --quiet --format lines --tokenizer "$data/tokenizers/mistral-v1.model" - |
    pack --quiet --chunk 4096 --mode concat -o "$scratch/${evaluation%:*}"
done
pack --cat --json "$scratch/evaluation" > "$scratch/evaluation.jsonl"
"$python" scripts/compare/train_side_by_side.py --scratch "$scratch" "$@"
