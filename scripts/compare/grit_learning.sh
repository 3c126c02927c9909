#!/usr/bin/env bash
# What `train --objective grit` learns: the toy set of GRIT's authors, made-up texts, and solutions of GSM8K.
#
# usage: scripts/compare/grit_learning.sh [--parts LIST] [--toy-epochs N] [--synthetic-steps N] [--gsm8k-steps N]
#                                         [--gsm8k-accum N] [--work FOLDER] [OUT.md]
#
#   --parts LIST         of toy,synthetic,gsm8k (default: all); on two processors about 6, 10 and 45 minutes
#   --toy-epochs N       passes over the toy set (default: 300)
#   --synthetic-steps N  of the training on made-up texts (default: 600, a second each)
#   --gsm8k-steps N      of each of the three trainings on GSM8K (default: 300, three seconds each; 100 take a quarter of an hour)
#   --gsm8k-accum N      micro-batches of 32 problems of their steps (default: 4)
#   --work FOLDER        keeps runs and the parts of the report: another call adds its parts, and goes on with trainings on
#                        GSM8K that were stopped
#   OUT.md               where the report goes, with all parts that there are (default: standard output)
#
# The toy set (10 records) shall be learnt by heart. Made-up texts share a number of six letters with their query alone; queries
# held out shall find theirs with nDCG@10 above 0.9. GSM8K is examples/grit with the 1,319 problems of the test set: untrained,
# BM25, embedding only and unified, with bootstrap intervals, and perplexity beside generative only. Whatever comes out is
# reported. TRAINWRIGHT_TEST_DATA names the folder of real data.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

wanted=toy,synthetic,gsm8k toy_epochs=300 synthetic_steps=600 gsm8k_steps=300 gsm8k_accum=4 work='' out=/dev/stdout
while (($# > 0)); do
  case $1 in
    --parts) wanted=${2:?} && shift ;;
    --toy-epochs) toy_epochs=${2:?} && shift ;;
    --synthetic-steps) synthetic_steps=${2:?} && shift ;;
    --gsm8k-steps) gsm8k_steps=${2:?} && shift ;;
    --gsm8k-accum) gsm8k_accum=${2:?} && shift ;;
    --work) work=${2:?} && shift ;;
    -h | --help) print_usage && exit ;;
    -*) die "unknown option $1" "see --help" ;;
    *) out=$1 ;;
  esac
  shift
done
data=${TRAINWRIGHT_TEST_DATA:?the folder with records/}
export PATH=$PWD/build/release/bin:$PATH
if [[ -z $work ]]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
fi
mkdir -p "$work"

# learn PART OPTION...: a part that grit_learning.py trains and reports.
learn() {
  rm -rf "$work/${1:?}"
  mkdir "$work/$1"
  PYTHONPATH=scripts/compare python3 scripts/compare/grit_learning.py "$1" --scratch "$work/$1" "${@:2}" > "$work/$1.part"
  mv "$work/$1.part" "$work/$1.md"
}

gsm8k() {
  local runs=$work/gsm8k-$gsm8k_steps-$gsm8k_accum
  make -f examples/grit/Makefile WORK="$runs" GSM8K="$data/records" STEPS="$gsm8k_steps" ACCUM="$gsm8k_accum" \
    BIN="$PWD/build/release/bin" >&2
  {
    printf '\n## GSM8K, %s steps of %s problems for each training\n\n' "$gsm8k_steps" $((32 * gsm8k_accum))
    sed 1,2d "$runs/report.md"
    printf '\nThe unified model answers a problem that is in neither set:\n\n'
    sed 's/^/    /' "$runs/answers.jsonl"
  } > "$work/gsm8k.md"
}

for part in ${wanted//,/ }; do
  case $part in
    toy) learn toy --data "$data" --epochs "$toy_epochs" ;;
    synthetic) learn synthetic --steps "$synthetic_steps" ;;
    gsm8k) gsm8k ;;
    *) die "unknown part $part" "toy, synthetic or gsm8k" ;;
  esac
done
{
  printf '# What GRIT learns, %s\n\n' "$(date -u +%F)"
  printf 'scripts/compare/grit_learning.sh, models of the size of llama-1m, %s processors.\n' "$(nproc)"
  for part in toy synthetic gsm8k; do
    [[ ! -e $work/$part.md ]] || cat "$work/$part.md"
  done
} > "$work/report.md"
cat "$work/report.md" > "$out"
