#!/usr/bin/env bash
# `train` in bf16 beside itself in fp32, one thread on one pinned processor: tokens of a processor's second, in interleaved
# rounds whose order turns round each time.
#
# usage: scripts/compare/precisions.sh [--bin DIR] [--rounds N] [--cpu N] WORK_FOLDER
#
#   --bin DIR   folder of the tools (default: build/release/bin)
#   --rounds N  default: 5
#   --cpu N     the processor (default: 0)
#
# Prints a table by model: medians, the range of the ratio bf16 / fp32 over rounds, and the processor.
set -euo pipefail
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
bin=$source_dir/build/release/bin rounds=5 cpu=0
while (($#)); do
  case $1 in
    --bin) bin=$2; shift 2 ;;
    --rounds) rounds=$2; shift 2 ;;
    --cpu) cpu=$2; shift 2 ;;
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" | sed '$d'; exit 0 ;;
    -*) echo "precisions.sh: unknown argument $1" >&2; exit 2 ;;
    *) break ;;
  esac
done
[[ $# -eq 1 ]] || { echo "precisions.sh: name a folder for its files" >&2; exit 2; }
mkdir -p "$1" && cd "$1"
export PATH=$bin:$PATH
if [[ ! -d shards ]]; then
  seq 1 60000 | sed 's/$/ is a number, and the next line has the one that comes after it/' > text.txt
  pretokenize -q --tokenizer "$source_dir/examples/data/mistral-v1.model" text.txt | pack -q --chunk 2048 -o shards
fi
model() {  # name, hidden size, intermediate size, layers, heads, vocabulary
  cat > "$1.json" << END_OF_MODEL
{"model_type": "llama", "vocab_size": $6, "hidden_size": $2, "intermediate_size": $3, "num_hidden_layers": $4,
 "num_attention_heads": $5, "num_key_value_heads": $5, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5,
 "rope_theta": 10000, "tie_word_embeddings": true, "hidden_act": "silu"}
END_OF_MODEL
}
model 6x384 384 1024 6 6 32000
model 12x768 768 2048 12 12 32000
model 2x128 128 512 2 2 32000
run() {  # round, model, precision, tokens of a sample, samples, steps
  local out="run-$2-$3-$1"
  rm -rf "$out"
  taskset -c "$cpu" train -q --progress never --data shards --model "$2.json" --seq "$4" --batch "$5" --steps "$6" --threads 1 \
    --device cpu --mixed-precision "$3" --save-every 0 --save-model-only --log-every 1 --out "$out" 2> "$out.err" || { cat "$out.err" >&2; exit 1; }
}
for ((round = 1; round <= rounds; ++round)); do
  for of in "6x384 512 2 4" "12x768 256 1 4" "2x128 256 16 8"; do
    read -r name seq batch steps <<< "$of"
    order=(no bf16)
    ((round % 2)) || order=(bf16 no)
    for precision in "${order[@]}"; do run "$round" "$name" "$precision" "$seq" "$batch" "$steps"; done
  done
done
python3 - "$rounds" << 'PYTHON'
import json, pathlib, statistics, sys
def rate(name, precision, round_number):
    records = [json.loads(line) for line in open(f"run-{name}-{precision}-{round_number}/metrics.jsonl")]
    steps = [record for record in records if record["type"] == "step"][1:]  # the first warms up
    return statistics.median(record["tokens_per_s"] for record in steps)
rounds = range(1, int(sys.argv[1]) + 1)
name = next(line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name"))
print(f"{name}, load {pathlib.Path('/proc/loadavg').read_text().split()[0]}, one pinned thread, {len(rounds)} rounds\n")
print("| model | fp32, tokens/s | bf16, tokens/s | bf16 / fp32, median (least, most) |\n|---|---|---|---|")
for model in ("6x384", "12x768", "2x128"):
    fp32, bf16 = ([rate(model, precision, number) for number in rounds] for precision in ("no", "bf16"))
    ratios = sorted(b / f for b, f in zip(bf16, fp32))
    print(f"| {model} | {statistics.median(fp32):.0f} | {statistics.median(bf16):.0f} | "
          f"{statistics.median(ratios):.2f} ({ratios[0]:.2f}, {ratios[-1]:.2f}) |")
PYTHON
