#!/usr/bin/env bash
# Trains the same adapters with `train` and with peft, plain and on NF4 weights: losses, time of a step, memory.
#
# usage: scripts/compare/lora.sh [--rank R] [--adapter-flags=FLAGS] [--steps N] [--rounds N] [--cpus LIST] [--longest-answer S]
#                                [--threads LIST] [--runs LIST] [--modes LIST] OUT
#
#   --rank R        of the adapters, beside all linear layers (default: 16)
#   --adapter-flags=FLAGS  of train, for adapters of another kind: "--dora", "--rslora --lora-save-modules lm_head"
#   --steps N       optimizer steps a round, beside two that are not timed (default: 5)
#   --rounds N      interleaved repetitions of each side (default: 5, the fewest of which anything is established)
#   --cpus LIST     processors to be pinned to (default: those with the least to do)
#   --longest-answer S  seconds after which a peer has failed; compiling is in its first answer (default: 1800)
#   --threads LIST  of both sides (default: 1)
#   --runs LIST     of fp32,bf16,fp32-nf4,bf16-nf4 (default: all)
#   --modes LIST    of eager,compiled,max-autotune: PyTorch's contestants (default: all)
#   OUT             writes OUT.json, from which the same command goes on, and OUT.md
#
# The model is a Llama of 6 layers, 384 wide, with a vocabulary of 32,000; a step is 2,048 tokens. Both sides have the
# same base, the same first adapter, tokens, order, optimizer and schedule, and as many threads.
# PYTHON names a Python with torch, transformers, peft, bitsandbytes and safetensors; TRAINWRIGHT_TEST_DATA the folder of
# real data. Tell LOAD what else the machine was doing, for the report. See lora.py.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

[[ ${1:-} != -h && ${1:-} != --help ]] || { print_usage; exit; }
(($# > 0)) || die "OUT is missing" "scripts/compare/lora.sh --help"
python=${PYTHON:-python3}
"$python" -c 'import peft, bitsandbytes' 2> /dev/null || die "$python has no peft and bitsandbytes" "PYTHON names another"
data=${TRAINWRIGHT_TEST_DATA:?the folder with tokenizers/ and bench/}
export PATH=$PWD/build/release/bin:$PATH OMP_WAIT_POLICY=passive
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# One document, so that every sample is one span and plain causal attention is the same computation.
# Python reads no further than it needs, which is no failure of zstd's.
{ zstd -dcq "$data/bench/english-32MB.jsonl.zst" || [[ $? == 141 ]]; } | "$python" -c '
import itertools, json, sys
documents = (json.loads(line)["text"].replace("\n", " ") for line in sys.stdin)
print(" ".join(itertools.islice(documents, 100))[:400_000])' > "$scratch/text"
pretokenize --quiet --format lines --tokenizer "$data/tokenizers/mistral-v1.model" "$scratch/text" |
  pack --quiet --chunk 4096 --mode concat -o "$scratch/shards"
pack --cat --json "$scratch/shards" > "$scratch/chunks.jsonl"
"$python" scripts/compare/lora.py side-by-side --scratch "$scratch" "$@"
