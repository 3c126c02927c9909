#!/usr/bin/env bash
# What each of 1, 8 and 64 ranks pays for reading its samples: each decodes the whole step and keeps its share.
#
# usage: scripts/compare/rank_loader.sh [--rounds N] [--tokens N] [--ranks LIST] [--rates LIST] [OUT.md]
#
#   --rounds N    interleaved repetitions, each in a process of its own (default: 5)
#   --tokens N    of the stream that are read each time (default: 40000000)
#   --ranks LIST  numbers of ranks (default: 1,8,64)
#   --rates LIST  tokens a second that a rank trains on (default: 8000,480000: on an H200 at 360 to 390 of its 989 TFLOP/s,
#                 models of 8 billion and of 124 million parameters)
#   OUT.md        where the report goes (default: standard output)
#
# One rank of so many is run, alone, without a model and without the others: what it reads, decodes and cuts is what it would
# among them. Exits 1 where a rank takes 5 % of a core or more of the default shards at one of the rates.
# TRAINWRIGHT_TEST_DATA names the folder of real data (tokenizers/ and bench/), TRAINWRIGHT_BIN that of the tools,
# LOADER_SPEED that program (default: both are built in build/release).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh
# shellcheck source=scripts/compare/english_shards.sh
source scripts/compare/english_shards.sh

[[ ${1:-} != -h && ${1:-} != --help ]] || { print_usage; exit 0; }
: "${TRAINWRIGHT_TEST_DATA:?the folder with tokenizers/ and bench/}"
[[ ${LOADER_SPEED:-} ]] || ninja -C build/release loader_speed > /dev/null
[[ ${TRAINWRIGHT_BIN:-} ]] || ninja -C build/release pretokenize pack > /dev/null
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
english_shards "${TRAINWRIGHT_BIN:-build/release/bin}" "$TRAINWRIGHT_TEST_DATA" "$work"
python3 scripts/compare/rank_loader.py --work "$work" --loader-speed "${LOADER_SPEED:-build/release/tests/loader_speed}" "$@"
