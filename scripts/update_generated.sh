#!/usr/bin/env bash
# Writes the files that come from the tools' own definitions: man/*.1, completions/ and tests/cli/cli.json.
#
# usage: scripts/update_generated.sh [--clidoc FILE] [--into DIR]
#
#   --clidoc FILE   the built clidoc (default: build/release/bin/clidoc, built first)
#   --into DIR      write below this folder instead of the source tree
set -euo pipefail
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
clidoc='' into=$source_dir
while (($#)); do
  case $1 in
    --clidoc) clidoc=$2; shift 2 ;;
    --into) into=$2; shift 2 ;;
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" | sed '$d'; exit 0 ;;
    *) echo "update_generated.sh: unknown argument $1" >&2; exit 2 ;;
  esac
done
if [[ -z $clidoc ]]; then
  (cd "$source_dir" && cmake --build --preset release --target clidoc)
  clidoc=$source_dir/build/release/bin/clidoc
fi

# The date of a man page is that of the newest release in the changelog: the same source gives the same bytes.
date=$(sed -n 's/^## \[[0-9][^]]*\] - \([0-9-]*\)$/\1/p' "$source_dir/CHANGELOG.md" | head -n 1)
[[ $date ]] || { echo "update_generated.sh: CHANGELOG.md names no dated release" >&2; exit 1; }

mkdir -p "$into"/man "$into"/completions/{bash,zsh,fish} "$into"/tests/cli
for tool in $("$clidoc" list); do
  "$clidoc" man "$tool" --date "$date" > "$into/man/$tool.1"
  "$clidoc" bash "$tool" > "$into/completions/bash/$tool"
  "$clidoc" zsh "$tool" > "$into/completions/zsh/_$tool"
  "$clidoc" fish "$tool" > "$into/completions/fish/$tool.fish"
done
"$clidoc" json > "$into/tests/cli/cli.json"
