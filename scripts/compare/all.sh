#!/usr/bin/env bash
# Measures what is claimed of this suite's speed beside its peers, and writes one table: claim, peer, ratio, interval, machine.
#
# usage: scripts/compare/all.sh [--deadline MINUTES] [--only NAME,...] [--results DIR] [--again] [--list] [--table] [--quick]
#
#   --deadline M   minutes after which no run is started and the one under way is stopped, building included (default: 120); a run
#                  gets half as much more at once than claims.tsv says that it takes
#   --only LIST    names of runs or of claims of scripts/compare/claims.tsv
#   --results DIR  keeps DIR/KIND/CLAIM.json, one for each kind of processor and claim, and DIR/claims.md, the table of them
#                  all (default: scripts/compare/results/claims)
#   --again        first removes what has been measured of all claims, or of those of --only; afterwards the command without
#                  it goes on
#   --list         prints what is due, and measures nothing
#   --table        writes the table of what is there, and measures nothing
#   --quick        one round of each, to see that everything runs; it writes below build/compare/claims-quick alone
#
# The same command goes on where it was stopped. It builds what the comparisons run (cmake --preset release first). Python peers
# are installed into build/compare/peers, build/compare/loader and build/compare/tokenizer_json_families, unless PYTHON names a Python
# that has them all (JSON_PYTHON and LOADER_PYTHON: those of the last two).
# TRAINWRIGHT_TEST_DATA is the folder of real data. See README.md in this folder for the protocol and how to read the table.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

[[ ${1:-} != -h && ${1:-} != --help ]] || { print_usage; exit; }
for option in "$@"; do
  case $option in --list | --table) exec python3 scripts/compare/claims.py "$@" ;; esac
done
: "${TRAINWRIGHT_TEST_DATA:?the folder with tokenizers/, bench/ and text/}"
TRAINWRIGHT_TEST_DATA=$(cd "$TRAINWRIGHT_TEST_DATA" && pwd)
export TRAINWRIGHT_TEST_DATA HF_HUB_OFFLINE=1
build release train pretokenize pack evaluate generate embed encode_speed loader_speed packer_speed codec_bench kernel_speed
if [[ -z ${PYTHON:-} ]]; then
  for peers in peers loader tokenizer_json_families; do
    python=build/compare/$peers/bin/python
    [[ -e build/compare/$peers/done ]] && continue
    say "installing peers into build/compare/$peers"
    python3 -m venv "build/compare/$peers"
    "$python" -m pip install --quiet -r "scripts/compare/$peers.requirements.txt"
    touch "build/compare/$peers/done"
  done
  export LOADER_PYTHON=$PWD/build/compare/loader/bin/python
  export JSON_PYTHON=$PWD/build/compare/tokenizer_json_families/bin/python
  export PYTHON=$PWD/build/compare/peers/bin/python
fi
python3 scripts/compare/claims.py --spent "$SECONDS" "$@"
