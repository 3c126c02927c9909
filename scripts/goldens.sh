#!/usr/bin/env bash
# Holds training to its recorded weights: short runs whose final weights, bit for bit, must stay what they were.
#
# usage: scripts/goldens.sh [--bin BUILD_DIR] [MODE] [--group NAME]... [--seed N]
#
#   --check          compare with the record of this machine's key (default); status 1 when a run differs, with a list.
#                    Without a record of a group: build its base commit from this repository's history (some 20 minutes),
#                    and compare
#   --check --base   compare with a build of the base commit even where there is a record
#   --check --against OTHER_BUILD_DIR   compare with a build that there is
#   --write          record what the build gives under this machine's key
#   --full OUT.tsv   run the full product, one line a run, and compare nothing; 20 minutes of processor time, and may be
#                    stopped and run again
#   --list           print the runs
#   --states         make the run directories of tests/golden/resume anew: with the build of the version they stand for
#   --bin BUILD_DIR  build folder with bin/train (default: build/release)
#   --group NAME     pairwise, dropout, resume, resume_dropout or ten; may be repeated (default: all five)
#   --seed N         of the runs (default: 1); with another one a check must fail
#
# pairwise runs each two values of each two options together at least once, over families, precisions, adapters,
# accumulation, recomputation, offloading, optimizer states and more; dropout likewise, with dropout; resume continues
# run directories that an earlier version left, resume_dropout those with dropout; ten is what pairwise is, of the family
# ten. See tests/golden/weights/README.md.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

no_record=77  # status of goldens.py check
bin=build/release mode=check base=no against='' output='' options=() groups=()
while (($#)); do
  case $1 in
    -h | --help) print_usage; exit 0 ;;
    --bin) bin=${2:?--bin needs a build folder}; shift ;;
    --check | --write | --list | --states) mode=${1#--} ;;
    --full) mode=full output=${2:?--full needs a file}; shift ;;
    --base) base=yes ;;
    --against) against=${2:?--against needs a build folder}; shift ;;
    --group) groups+=("${2:?--group needs a name}"); shift ;;
    --seed) options+=(--seed "${2:?--seed needs a number}"); shift ;;
    *) die "unknown argument $1" "scripts/goldens.sh --help" ;;
  esac
  shift
done
((${#groups[@]})) || mapfile -t groups < <(cut -d " " -f 1 tests/golden/weights/BASE)

goldens() { python3 scripts/goldens.py --bin "$bin" "$@" "${options[@]}"; }

# build_of COMMIT: builds the tools of a commit in a folder of its own under build/, and prints its build folder.
build_of() {
  local commit=$1 folder=$PWD/build/base-${1:0:12}
  git cat-file -e "$commit^{commit}" 2> /dev/null ||
    die "the base commit $commit is not in this repository" \
      "fetch its history (git fetch --unshallow), or name a build of it by --against"
  if [[ ! -d $folder ]]; then
    mkdir -p "$folder.part"
    git archive "$commit" | tar -x -C "$folder.part"
    mv "$folder.part" "$folder"
  fi
  {
    run cmake -S "$folder" -B "$folder/build/release" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTRAINWRIGHT_TESTS=OFF
    run cmake --build "$folder/build/release" --parallel "$(build_jobs)" --target pretokenize pack train ckpt-compress
  } > "$folder.log" 2>&1 || die "the base commit could not be built" "see $folder.log"
  printf '%s' "$folder/build/release"
}

# compare_with_base GROUP...: each with the commit that tests/golden/weights/BASE names for it.
compare_with_base() {
  local group commit other status=0
  for group in "$@"; do
    other=$against
    if [[ -z $other ]]; then
      commit=$(awk -v group="$group" '$1 == group {print $2}' tests/golden/weights/BASE)
      [[ -n $commit ]] || die "tests/golden/weights/BASE names no commit for $group"
      say "comparing $group with a build of ${commit:0:12}"
      other=$(build_of "$commit")
    fi
    goldens compare "$other" --group "$group" || status=$?
  done
  return "$status"
}

group_options=()
for group in "${groups[@]}"; do group_options+=(--group "$group"); done

case $mode in
  check)
    if [[ $base == yes || -n $against ]]; then
      compare_with_base "${groups[@]}"
      exit
    fi
    status=0
    goldens check "${group_options[@]}" || status=$?
    ((status == no_record)) || exit "$status"
    mapfile -t groups < <(goldens missing "${group_options[@]}")
    compare_with_base "${groups[@]}"
    ;;
  full) goldens full "$output" ;;
  *) goldens "$mode" "${group_options[@]}" ;;
esac
