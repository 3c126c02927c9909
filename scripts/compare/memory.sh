#!/usr/bin/env bash
# Peak memory of `pretokenize | pack` on 100 MB and on 1 GB of text: it must not grow with the input.
#
# usage: scripts/compare/memory.sh [SMALL_MB LARGE_MB]     (default: 100 1000)
#
# The text is Shakespeare's plays repeated, every speech with a number of its own so that no two are alike; it goes
# through pipes and is stored nowhere. Prints both peaks and their ratio; exits 1 when they differ by over 10 %.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

small_mb=${1:-100} large_mb=${2:-1000}
bin=${TRAINWRIGHT_BIN:-build/release/bin}
[[ -x $bin/pack ]] || die "$bin/pack is missing" "cmake --build --preset release, or set TRAINWRIGHT_BIN"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# text MEGABYTES: NUL-ended documents.
text() {
  python3 - "$1" examples/data/tinyshakespeare.txt << 'PYTHON'
import signal
import sys

signal.signal(signal.SIGPIPE, signal.SIG_DFL)
rest = int(sys.argv[1]) * 1_000_000
speeches = open(sys.argv[2], encoding="utf-8").read().split("\n\n")
number = 0
while rest > 0:
    documents = []
    for speech in speeches:
        number += 1
        documents.append(f"{number}. {speech}\0")
    block = "".join(documents).encode()[:rest]
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

small=$(peaks "$small_mb")
read -r small_pretokenize small_pack <<< "$small"
say "$small_mb MB: pretokenize $((small_pretokenize / 1048576)) MiB, pack $((small_pack / 1048576)) MiB"
large=$(peaks "$large_mb")
read -r large_pretokenize large_pack <<< "$large"
say "$large_mb MB: pretokenize $((large_pretokenize / 1048576)) MiB, pack $((large_pack / 1048576)) MiB"
awk -v a="$small_pretokenize" -v b="$large_pretokenize" -v c="$small_pack" -v d="$large_pack" 'BEGIN {
  printf "ratio: pretokenize %.3f, pack %.3f, together %.3f\n", b / a, d / c, (b + d) / (a + c)
  exit (b + d) / (a + c) > 1.1 || (b + d) / (a + c) < 0.9
}' || die "the peaks differ by over 10 %"
