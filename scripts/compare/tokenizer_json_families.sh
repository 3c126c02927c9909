#!/usr/bin/env bash
# Compares the ids of tokenizer.json files of every family with Hugging Face tokenizers, and times both on one thread.
#
# usage: scripts/compare/tokenizer_json_families.sh [--rounds N] [--cpus LIST] [--every N] [--timed LIST] OUT
#
#   --rounds N    interleaved repetitions of both (default: 5, the fewest of which anything is established)
#   --cpus LIST   the processor to be pinned to (default: the one with the least to do)
#   --every N     takes every N-th document of bench/ (default: 8)
#   --timed LIST  of text,english,code,random (default: english); ids are compared of all of them
#   OUT           writes OUT.json, from which the same command goes on, and OUT.md
#
# JSON_PYTHON, or PYTHON, names a Python with scripts/compare/tokenizer_json_families.requirements.txt, whose transformers is not the
# one of the other comparisons; TRAINWRIGHT_TEST_DATA is the folder of real data (tokenizers/, text/ and bench/). Exit status 1 where
# ids differ. See tokenizer_json_families.py for how the files are made.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

[[ ${1:-} != -h && ${1:-} != --help ]] || { print_usage; exit; }
(($# > 0)) || die "OUT is missing" "scripts/compare/tokenizer_json_families.sh --help"
: "${TRAINWRIGHT_TEST_DATA:?the folder with tokenizers/, text/ and bench/}"
python=${JSON_PYTHON:-${PYTHON:-python3}}
"$python" -c 'import google.protobuf, sentencepiece, tokenizers, transformers' 2> /dev/null ||
  die "$python lacks a package" "see scripts/compare/tokenizer_json_families.requirements.txt; JSON_PYTHON names another Python"
ninja -C build/release encode_speed > /dev/null
"$python" scripts/compare/tokenizer_json_families.py --data "$TRAINWRIGHT_TEST_DATA" --encode-speed build/release/tests/encode_speed "$@"
