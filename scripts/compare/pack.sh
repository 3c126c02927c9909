#!/usr/bin/env bash
# Packs real text with this suite and compares: bits a token beside other codings of the same ids with the same zstd, level
# and frame; the cost of best-fit packing beside packers in Python; how compression scales with threads.
#
# usage: scripts/compare/pack.sh [--rounds N] [--cpus LIST] [--parts LIST] OUT
#
#   --rounds N    interleaved repetitions of what is timed (default: 5, the fewest of which anything is established)
#   --cpus LIST   processors to be pinned to (default: those with the least to do)
#   --parts LIST  of sizes,packing,threads (default: all)
#   OUT           writes OUT.json, from which the same command goes on, and OUT.md
#
# PYTHON names a Python with numpy (default: python3). TRAINWRIGHT_TEST_DATA is the folder of real data (tokenizers/ and
# bench/). Takes some 5 minutes. See pack_side_by_side.py for what is measured.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

[[ ${1:-} != -h && ${1:-} != --help ]] || { print_usage; exit; }
(($# > 0)) || die "OUT is missing" "scripts/compare/pack.sh --help"
: "${TRAINWRIGHT_TEST_DATA:?the folder with tokenizers/ and bench/}"
python=${PYTHON:-python3}
"$python" -c 'import numpy' 2> /dev/null || die "$python lacks numpy" "pip install numpy, or PYTHON=PROGRAM"
ninja -C build/release packer_speed pretokenize pack > /dev/null
"$python" scripts/compare/pack_side_by_side.py --data "$TRAINWRIGHT_TEST_DATA" --bin build/release/bin \
  --packer-speed build/release/tests/packer_speed "$@"
