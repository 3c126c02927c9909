#!/usr/bin/env bash
# Reads packed tokens in shuffled order with this suite's loader and with its peers: tokens for a CPU second.
#
# usage: scripts/compare/loader.sh [--rounds N] [--cpus LIST] [--tokens N] OUT
#
#   --rounds N   interleaved repetitions of every contestant, each in a process of its own (default: 5, the fewest of which
#                anything is established)
#   --cpus LIST  the processor to be pinned to (default: the one with the least to do)
#   --tokens N   read by each (default: 20000000)
#   OUT          writes OUT.json, from which the same command goes on, and OUT.md
#
# LOADER_PYTHON, or PYTHON, names a Python with scripts/compare/loader.requirements.txt; TRAINWRIGHT_TEST_DATA the folder of real data
# (tokenizers/ and bench/). See loader_side_by_side.py for what is timed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh
# shellcheck source=scripts/compare/english_shards.sh
source scripts/compare/english_shards.sh

[[ ${1:-} != -h && ${1:-} != --help ]] || { print_usage; exit; }
(($# > 0)) || die "OUT is missing" "scripts/compare/loader.sh --help"
python=${LOADER_PYTHON:-${PYTHON:-python3}}
: "${TRAINWRIGHT_TEST_DATA:?the folder with tokenizers/ and bench/}"
"$python" -c 'import numpy, torch' 2> /dev/null ||
  die "$python lacks a peer" "see scripts/compare/loader.requirements.txt; PYTHON names another Python"
ninja -C build/release loader_speed pretokenize pack > /dev/null
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tools=build/release/bin
english_shards "$tools" "$TRAINWRIGHT_TEST_DATA" "$work"
"$tools/pack" --cat --json "$work/shards-2048" > "$work/chunks.jsonl"
"$python" scripts/compare/loader_side_by_side.py --work "$work" --loader-speed build/release/tests/loader_speed "$@"
