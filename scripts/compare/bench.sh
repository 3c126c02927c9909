#!/usr/bin/env bash
# How often `bench` is wrong: comparisons of a command with itself, and with itself made 5 % slower, beside what
# hyperfine's Welch test and Google Benchmark's U test say of the same command.
#
# usage: scripts/compare/bench.sh [--trials N] [--slower N] [--budget S] [OUT.md]
#
#   --trials N   comparisons of equals (default: 200)
#   --slower N   comparisons with 5 % more wall time (default: 100)
#   --budget S   seconds of measuring of one `bench` run (default: 1)
#   OUT.md       where the report goes (default: standard output)
#
# hyperfine runs one command after the other, as it does, as often as `bench` ran each; its times are judged by the rule
# of its scripts/welch_ttest.py, and by the two-sided Mann-Whitney test of Google Benchmark's tools/compare.py. PYTHON
# names a Python with scipy.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

python=${PYTHON:-python3}
"$python" -c 'import scipy' 2> /dev/null || die "$python has no scipy" "PYTHON names another Python"
command -v hyperfine > /dev/null || die "there is no hyperfine" "it is a package of Debian and Ubuntu"
export PATH=$PWD/build/release/bin:$PATH
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
exec "$python" scripts/compare/bench_trials.py --scratch "$scratch" --text examples/data/tinyshakespeare.txt "$@"
