#!/usr/bin/env bash
# Peak memory of `pretokenize | pack` on 100 MB, 1 GB and 5 GB of text: it must not grow with the input.
#
# usage: scripts/compare/memory.sh [--cipher] [MB]...     (default: 100 1000 5000)
#
#   --cipher   words hardly repeat (default sizes: 400 1000 5000): what the tokenizer remembers grows to its bound, and it
#              must forget the rest
#
# The text is Shakespeare's plays over and over, every speech with a number of its own so that no two are alike; with
# --cipher each time with other letters for the letters. It goes through pipes and is stored nowhere. Prints the peaks and
# their ratio to the first; exits 1 when one differs by over 10 %.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

cipher=0
case ${1:-} in
  --cipher) cipher=1; shift ;;
  -h | --help) print_usage; exit ;;
esac
[[ $# -gt 0 ]] || if ((cipher)); then set -- 400 1000 5000; else set -- 100 1000 5000; fi
bin=${TRAINWRIGHT_BIN:-build/release/bin}
[[ -x $bin/pack ]] || die "$bin/pack is missing" "cmake --build --preset release, or set TRAINWRIGHT_BIN"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# text MEGABYTES: NUL-ended documents.
text() {
  python3 - "$1" examples/data/tinyshakespeare.txt "$cipher" << 'PYTHON'
import random
import signal
import string
import sys

signal.signal(signal.SIGPIPE, signal.SIG_DFL)
rest = int(sys.argv[1]) * 1_000_000
speeches = open(sys.argv[2], encoding="utf-8").read().split("\n\n")
letters = string.ascii_letters
rng = random.Random(1)
number = 0
while rest > 0:
    documents = []
    for speech in speeches:
        number += 1
        documents.append(f"{number}. {speech}\0")
    block = "".join(documents).encode()[:rest]
    if sys.argv[3] == "1":
        block = block.translate(bytes.maketrans(letters.encode(), "".join(rng.sample(letters, len(letters))).encode()))
    sys.stdout.buffer.write(block)
    rest -= len(block)
PYTHON
}

# peaks MEGABYTES: peak resident bytes of pretokenize and of pack.
peaks() {
  text "$1" |
    "$bin/pretokenize" --quiet --tokenizer examples/data/mistral-v1.model --format nul --summary "$scratch/tokens.json" |
    "$bin/pack" --quiet --chunk 32768 -o "$scratch/shards/" --summary "$scratch/pack.json"
  python3 - "$scratch/tokens.json" "$scratch/pack.json" << 'PYTHON'
import json
import sys

print(*(json.load(open(path))["max_memory_bytes"] for path in sys.argv[1:]))
PYTHON
  rm -rf "$scratch/shards"
}

first_pretokenize='' first_pack='' grown=0
for megabytes in "$@"; do
  read -r pretokenize pack <<< "$(peaks "$megabytes")"
  : "${first_pretokenize:=$pretokenize}" "${first_pack:=$pack}"
  say "$megabytes MB: pretokenize $((pretokenize / 1048576)) MiB, pack $((pack / 1048576)) MiB"
  awk -v a="$first_pretokenize" -v b="$pretokenize" -v c="$first_pack" -v d="$pack" 'BEGIN {
    printf "  ratio to the first: pretokenize %.3f, pack %.3f, together %.3f\n", b / a, d / c, (b + d) / (a + c)
    exit (b + d) / (a + c) > 1.1 || (b + d) / (a + c) < 0.9
  }' || grown=1
done
[[ $grown = 0 ]] || die "the peaks differ by over 10 %"
