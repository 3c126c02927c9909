#!/usr/bin/env bash
# Prints the name of every test case of a build, one a line, sorted: what a change must not lose.
#
# usage: scripts/list_tests.sh [--fold] [BUILD_DIR]
#
#   --fold     one line, ending in /*, for all values of a parameter
#   BUILD_DIR  has been built with its tests (default: build/release)
#
# A GoogleTest case is BINARY/SUITE.CASE, BINARY without its _test, as the binary itself lists it, so that the list does not
# depend on how CTest runs the cases; other CTest tests have their own names. tests/golden/test_names.txt and
# test_names_asan.txt are the folded lists of the release and the asan build; a line of these that is gone is a lost promise:
#
#   scripts/list_tests.sh --fold | LC_ALL=C comm -23 tests/golden/test_names.txt -
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

build=build/release fold=no
while (($#)); do
  case $1 in
    -h | --help) print_usage; exit 0 ;;
    --fold) fold=yes ;;
    -*) die "unknown argument $1" "scripts/list_tests.sh --help" ;;
    *) build=$1 ;;
  esac
  shift
done
[[ -e $build/CTestTestfile.cmake ]] || die "$build is no build folder with tests"

# list_cases BINARY: its cases, without the values that follow the names.
list_cases() {
  local name
  name=$(basename "$1")
  "$1" --gtest_list_tests | awk -v binary="${name%_test}" '
    /^[^ ].*\.( |$)/ {suite = $1}
    /^  [^ ]/ {print binary "/" suite $1}'
}

# list_others: CTest tests that do not run cases of a GoogleTest binary.
list_others() {
  (cd "$build" && ctest --show-only=json-v1) | python3 -c '
import json, sys
for test in json.load(sys.stdin)["tests"]:
    if test["name"].endswith("_NOT_BUILT"):
        sys.exit("list_tests: error: " + test["name"][:-len("_NOT_BUILT")] + " has not been built")
    if not any(argument.startswith("--gtest_filter=") for argument in test.get("command", [])):
        print(test["name"])'
}

# fold_values: of standard input, where asked for.
fold_values() {
  if [[ $fold == yes ]]; then sed -E 's|^([^/]+/[^/]+/[^/.]+\.[^/]+)/.*|\1/*|'; else cat; fi
}

{
  while IFS= read -r binary; do list_cases "$binary"; done < <(find "$build/tests" -name '*_test' -type f -perm -u+x)
  list_others
} | fold_values | LC_ALL=C sort -u
