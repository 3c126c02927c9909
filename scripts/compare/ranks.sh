#!/usr/bin/env bash
# Trains a Llama with `train` and with PyTorch's DistributedDataParallel over Gloo, on one rank of two threads and on two
# ranks of one thread, on links of several speeds, with buckets that overlap the backward pass and with one that does not;
# on the first of them ranks of `train` also with --zero 1, --zero 2 and --exact-world 2.
#
# usage: scripts/compare/ranks.sh [--rounds N] [--steps N] [--precision P] [--rates LIST] [--delays LIST] [--ours]
#                               [--foretell | --only-foretell] [OUT.md]
#
#   --rounds N     interleaved repetitions of every contestant (default: 3)
#   --steps N      optimizer steps of a run, of which the first three are not timed (default: 20)
#   --precision P  fp32 or bf16 (default: fp32)
#   --rates LIST   rates of the loopback, in tc's words, all ranks together; "free" leaves it alone (default: free,4gbit,1gbit)
#   --delays LIST  microseconds that each message is late, half where it is sent and half where it is received, on the free
#                  loopback (default: 500)
#   --ours         leave out PyTorch
#   --foretell     compare the steps of 1, 2 and 4 ranks with what `train --dry-run --world` tells of them; a run alone, of
#                  which it is told how fast it computes, and the ranks take turns
#   --only-foretell  that comparison alone
#   OUT.md         where the report goes (default: standard output)
#
# A step is the same 4,096 tokens everywhere: --batch 4 of 512 tokens, twice (--accum 2) on one rank. The model has 6 layers
# of width 384 and Mistral's vocabulary. Rates need the right to make a network namespace, in which the loopback is the
# script's own (unshare --net, tc qdisc tbf); where that is not permitted the report says so. Delays come from
# delayed_sockets.cc, which is compiled here. Exits 1 where two ranks of one thread stay below 0.9 of one rank of two, where
# their ratio to PyTorch is lower than that of one process, or where a foretold step takes less than 0.8 or more than 1.25 of
# the measured time: the report says which. TRAINWRIGHT_BIN names the folder of the tools (default: build/release/bin),
# PYTHON a Python with scripts/compare/requirements.txt, TRAINWRIGHT_TEST_DATA the folder of real data. See torch_train.py and
# ranks_side_by_side.py.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh
# shellcheck source=scripts/compare/one_document.sh
source scripts/compare/one_document.sh

[[ ${1:-} != -h && ${1:-} != --help ]] || { print_usage; exit 0; }
python=${PYTHON:-python3}
if [[ " $* " != *" --ours "* ]]; then
  "$python" -c 'import torch, safetensors, transformers' 2> /dev/null ||
    die "$python has no torch, safetensors and transformers" "see scripts/compare/requirements.txt; PYTHON names another Python, --ours does without"
fi
data=${TRAINWRIGHT_TEST_DATA:?the folder with tokenizers/ and bench/}
bin=$(cd "${TRAINWRIGHT_BIN:-build/release/bin}" && pwd) || die "the tools are not built" "cmake --build --preset release"
export PATH=$bin:$PATH
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"${CXX:-c++}" -O2 -shared -fPIC -o "$scratch/delayed_sockets.so" scripts/compare/delayed_sockets.cc
one_document_shards "$python" "$data" "$scratch"
"$python" scripts/compare/ranks_side_by_side.py --scratch "$scratch" "$@"
