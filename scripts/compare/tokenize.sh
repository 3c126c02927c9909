#!/usr/bin/env bash
# Tokenizes real text with this suite and with its peers, one thread each: MB of text for a CPU second, and whether the
# ids are the same.
#
# usage: scripts/compare/tokenize.sh [--rounds N] OUT
#
#   --rounds N   interleaved repetitions of every contestant, each in a process of its own (default: 3)
#   OUT          writes OUT.json and OUT.md
#
# PYTHON names a Python with scripts/compare/tokenize.requirements.txt; TRAINWRIGHT_TEST_DATA the folder of real data
# (tokenizers/ and bench/). See tokenize_side_by_side.py for what is timed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

python=${PYTHON:-python3} rounds=3 out=
while [[ $# -gt 0 ]]; do
  case $1 in
    --rounds) rounds=$2; shift 2 ;;
    -h | --help) print_usage; exit ;;
    *) out=$1; shift ;;
  esac
done
[[ $out ]] || die "OUT is missing" "scripts/compare/tokenize.sh --help"
: "${TRAINWRIGHT_TEST_DATA:?the folder with tokenizers/ and bench/}"
"$python" -c 'import tokenizers, tiktoken, sentencepiece, gigatoken, fastokens' 2> /dev/null ||
  die "$python lacks a peer" "see scripts/compare/tokenize.requirements.txt; PYTHON names another Python"
ninja -C build/release encode_speed pretokenize > /dev/null
"$python" scripts/compare/tokenize_side_by_side.py --data "$TRAINWRIGHT_TEST_DATA" --rounds "$rounds" --out "$out" \
  --encode-speed build/release/tests/encode_speed --pretokenize build/release/bin/pretokenize
