#!/usr/bin/env bash
# What `train --objective grit` learns: the toy set of GRIT's authors, made-up texts, and solutions of GSM8K.
#
# usage: scripts/compare/grit_learning.sh [--steps N] [--gsm8k-steps N] [--toy-epochs N] [OUT.md]
#
#   --steps N        of the training on made-up texts (default: 600)
#   --gsm8k-steps N  of each of the three trainings on GSM8K (default: 300)
#   --toy-epochs N   passes over the toy set (default: 200)
#   OUT.md           where the report goes (default: standard output)
#
# The toy set (10 records) shall be learnt by heart. Made-up texts share a number of six letters with their query alone; queries
# held out shall find theirs with nDCG@10 above 0.9. GSM8K is examples/grit with the 1,319 problems of the test set: untrained,
# BM25, embedding only and unified, and perplexity beside generative only. Whatever comes out is reported.
# TRAINWRIGHT_TEST_DATA names the folder of real data.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

steps=600 gsm8k_steps=300 toy_epochs=200 out=/dev/stdout
while (($# > 0)); do
  case $1 in
    --steps) steps=${2:?} && shift ;;
    --gsm8k-steps) gsm8k_steps=${2:?} && shift ;;
    --toy-epochs) toy_epochs=${2:?} && shift ;;
    -h | --help) print_usage && exit ;;
    -*) die "unknown option $1" "see --help" ;;
    *) out=$1 ;;
  esac
  shift
done
data=${TRAINWRIGHT_TEST_DATA:?the folder with records/}
export PATH=$PWD/build/release/bin:$PATH
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
PYTHONPATH=scripts/compare python3 scripts/compare/grit_learning.py --scratch "$scratch" --data "$data" \
  --steps "$steps" --toy-epochs "$toy_epochs" > "$scratch/report.md"
make -f examples/grit/Makefile WORK="$scratch/gsm8k" GSM8K="$data/records" STEPS="$gsm8k_steps" BIN="$PWD/build/release/bin" >&2
printf '\n## GSM8K, %s steps of each training\n\n' "$gsm8k_steps" >> "$scratch/report.md"
sed 1,2d "$scratch/gsm8k/report.md" >> "$scratch/report.md"
printf '\nThe unified model answers a problem that is in neither set:\n\n' >> "$scratch/report.md"
sed 's/^/    /' "$scratch/gsm8k/answers.jsonl" >> "$scratch/report.md"
cat "$scratch/report.md" > "$out"
