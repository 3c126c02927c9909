#!/usr/bin/env bash
# Tokenizes real text with this suite and with its peers: MB of text for a CPU second, cold and warm, on one thread and on
# two, whether the ids are the same, what a pipe into pack costs, and where the time goes.
#
# usage: scripts/compare/tokenize.sh [--rounds N] [--cpus LIST] [--parts LIST] [--models LIST] [--corpora LIST]
#                                    [--megabytes N] OUT
#
#   --rounds N      interleaved repetitions of every contestant, each in a process of its own (default: 5, the fewest of
#                   which anything is established)
#   --cpus LIST     processors to be pinned to (default: those with the least to do)
#   --parts LIST    of ids,encode,threads,pipe,profile (default: all)
#   --models LIST   of gpt2,mistral-v1 (default: both)
#   --corpora LIST  of english-32MB,code-16MB (default: both)
#   --megabytes N   at most so much of a corpus (default: all)
#   OUT             writes OUT.json, from which the same command goes on, and OUT.md
#
# Peers come from scripts/compare/tokenize.requirements.txt, installed into build/compare/tokenize; PYTHON names another
# Python that has them. spm_encode is Debian's package sentencepiece (SPM_ENCODE names another). perf, when it is there,
# says where the time goes. TRAINWRIGHT_TEST_DATA is the folder of real data (tokenizers/ and bench/). See README.md for the
# protocol, and tokenize_side_by_side.py for what is timed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

[[ ${1:-} != -h && ${1:-} != --help ]] || { print_usage; exit; }
(($# > 0)) || die "OUT is missing" "scripts/compare/tokenize.sh --help"
python=${PYTHON:-}
: "${TRAINWRIGHT_TEST_DATA:?the folder with tokenizers/ and bench/}"
if [[ -z $python ]]; then
  python=build/compare/tokenize/bin/python
  if [[ ! -x $python ]]; then
    say "installing the peers into build/compare/tokenize"
    python3 -m venv build/compare/tokenize
    "$python" -m pip install --quiet -r scripts/compare/tokenize.requirements.txt
  fi
fi
"$python" -c 'import tokenizers, tiktoken, sentencepiece, gigatoken, fastokens' 2> /dev/null ||
  die "$python lacks a peer" "see scripts/compare/tokenize.requirements.txt; PYTHON names another Python"
spm_encode=${SPM_ENCODE:-spm_encode}
command -v "$spm_encode" > /dev/null || say "there is no $spm_encode, which will be missing (apt install sentencepiece)"
ninja -C build/release encode_speed pretokenize pack > /dev/null
"$python" scripts/compare/tokenize_side_by_side.py --data "$TRAINWRIGHT_TEST_DATA" --encode-speed build/release/tests/encode_speed \
  --pretokenize build/release/bin/pretokenize --pack build/release/bin/pack --spm-encode "$spm_encode" "$@"
