#!/usr/bin/env bash
# Trains a SentencePiece unigram model of English and compares ids and speed of this suite with the Python package's.
#
# usage: scripts/compare/unigram.sh [--rounds N] [--cpus LIST] OUT
#
#   --rounds N     interleaved repetitions of both (default: 5, the fewest of which anything is established)
#   --cpus LIST    the processor to be pinned to (default: the one with the least to do)
#   OUT            writes OUT.json, from which the same command goes on, and OUT.md
#
# The model has 8,000 pieces of nmt_nfkc text and is trained on lines of the English sample, which both encode, 12 MB of it.
# PYTHON names a Python with scripts/make_unigram_fixtures.requirements.txt; TRAINWRIGHT_TEST_DATA is the folder of real data
# (bench/). unigram.py compares other models and texts.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

[[ ${1:-} != -h && ${1:-} != --help ]] || { print_usage; exit; }
(($# > 0)) || die "OUT is missing" "scripts/compare/unigram.sh --help"
: "${TRAINWRIGHT_TEST_DATA:?the folder with bench/}"
python=${PYTHON:-python3}
"$python" -c 'import sentencepiece' 2> /dev/null ||
  die "$python lacks sentencepiece" "see scripts/make_unigram_fixtures.requirements.txt; PYTHON names another Python"
out=${*: -1} options=("${@:1:$#-1}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
zstd -dcq "$TRAINWRIGHT_TEST_DATA/bench/english-32MB.jsonl.zst" | "$python" -c '
import json, sys
documents, total = open(sys.argv[1] + "/english", "wb"), 0
lines = open(sys.argv[1] + "/english.txt", "w")
for line in sys.stdin:
    text = json.loads(line)["text"]
    if total < 12e6:
        total += documents.write(text.encode() + b"\0")
        lines.write(text + "\n")' "$scratch"
"$python" -c '
import sys
sys.path.insert(0, "scripts/compare")
import sentencepiece, unigram
sentencepiece.SentencePieceTrainer.train(input=sys.argv[1] + "/english.txt", model_prefix=sys.argv[1] + "/nmt-nfkc", **unigram.BASE)
' "$scratch"
"$python" scripts/compare/unigram.py --speed build/release/tests/encode_speed --out "$out" "${options[@]}" \
  "$scratch/nmt-nfkc.model" "$scratch/english"
