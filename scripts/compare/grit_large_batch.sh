#!/usr/bin/env bash
# Trains with 16,384 queries and 32,768 passages in one optimizer step, and tells the peak memory beside that of 1,024.
#
# usage: scripts/compare/grit_large_batch.sh [--model MODEL] [--queries N] [OUT.md]
#
#   --model MODEL  of train (default: llama-1m)
#   --queries N    of a step, a multiple of 16 (default: 16384)
#   OUT.md         where the report goes (default: standard output)
#
# Scores are computed in tiles, so that what grows with the queries is a vector of each text and its gradient: the whole
# matrix of scores would take 2 GiB in fp32.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

model=llama-1m queries=16384 out=/dev/stdout
while (($# > 0)); do
  case $1 in
    --model) model=${2:?} && shift ;;
    --queries) queries=${2:?} && shift ;;
    -h | --help) print_usage && exit ;;
    -*) die "unknown option $1" "see --help" ;;
    *) out=$1 ;;
  esac
  shift
done
export PATH=$PWD/build/release/bin:$PATH
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

PYTHONPATH=scripts/compare python3 - "$scratch/records.jsonl" "$queries" << 'END'
import sys
import grit_data
grit_data.write_records(sys.argv[1], grit_data.contrastive_records(int(sys.argv[2]), 1, instructed=False))
END
pretokenize --quiet --tokenizer bytes --records contrastive --template grit "$scratch/records.jsonl" |
  pack --quiet -o "$scratch/shards"

# measure NAME ACCUM STEPS: one run's lines of the table.
measure() {
  train --quiet --objective grit --mode embedding --data "$scratch/shards" --model "$model" --batch 16 --accum "$2" \
    --steps "$3" --lr 1e-4 --save-every 0 --log-every 1 --out "$scratch/$1"
  python3 - "$scratch/$1/metrics.jsonl" "$(($2 * 16))" << 'END'
import json
import sys
steps = [record for record in map(json.loads, open(sys.argv[1], encoding="utf-8")) if record["type"] == "step"]
last = steps[-1]
queries, passages = int(sys.argv[2]), 2 * int(sys.argv[2])
print(f"| {queries} | {queries + passages} | {last['step_time_s']:.1f} | {last['tokens_per_s']:.0f} | "
      f"{last['tokens_if_padded'] / last['tokens']:.2f} | {last['max_memory_bytes'] / 1e6:.0f} | "
      f"{queries * passages * 4 / 1e6:.0f} | {last['loss_nats']:.4f} |")
END
}
{
  printf '# A contrastive batch of %s queries, %s\n\n' "$queries" "$(date -u +%F)"
  printf 'scripts/compare/grit_large_batch.sh: train --objective grit --model %s --batch 16, %s processors.\n\n' "$model" "$(nproc)"
  echo '| queries of a step | texts | step s | tokens/s | with padding | peak memory MB | scores as a whole MB | loss |'
  echo '|---|---|---|---|---|---|---|---|'
  measure small 64 2
  measure large $((queries / 16)) 1
} > "$scratch/report.md"
cat "$scratch/report.md" > "$out"
