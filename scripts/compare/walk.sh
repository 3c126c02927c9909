#!/usr/bin/env bash
# The walk of a new user, from text to a merged fine-tune, with the mistakes that one makes: each command and its output.
#
# usage: scripts/compare/walk.sh > walk.md
#
# Works in an empty folder with the example data and the tools of build/release/bin; needs jq. Minutes on two processors. Set
# PYTHON to a Python with mlflow, tensorboard and transformers to have these read what was written.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

[[ ${1:-} != -h && ${1:-} != --help ]] || { print_usage; exit; }
root=$PWD
export PATH=$root/build/release/bin:$PATH PYTHON=${PYTHON:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ln -s "$root"/examples/data/* "$folder"
cd "$folder"

# step TITLE STATUS LINES: the commands of standard input, their output as far as LINES, and that they end with STATUS.
step() {
  local title=$1 expected=$2 lines=$3 commands status=0 start=$SECONDS
  commands=$(cat)
  bash -euo pipefail -c "$commands" > output 2>&1 < /dev/null || status=$?
  printf '\n## %s\n```\n' "$title"
  while IFS= read -r line; do printf '$ %s\n' "$line"; done <<< "$commands"
  sed "s#$root#TRAINWRIGHT#g; s#$folder#FOLDER#g" output | head -n "$lines"
  (($(wc -l < output) <= lines)) || echo "[... $(($(wc -l < output) - lines)) lines more]"
  printf '```\nexit status %d, %d s\n' "$status" $((SECONDS - start))
  [[ $status = "$expected" ]] || die "'$title' ended with $status instead of $expected" "$(tail -n 3 output)"
}

printf '# The walk of a new user\n%s, %s processors, %s\n' "$(date -u +%F)" "$(nproc)" "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)"
step 'Text to shards' 0 12 <<< 'pretokenize --format file --tokenizer mistral-v1.model tinyshakespeare.txt | pack --chunk 2048 -o shards/
pack --info shards/'
step 'A first training' 0 25 <<< 'train --data shards --model llama-1m --steps 20 --seq 128 --batch 4 --eval-split 0.05 --eval-every 10 --out runs/first'
step 'What it learned' 0 8 <<< 'evaluate -q --checkpoint runs/first --data shards --eval-split 0.05 | jq "{perplexity, bits_per_byte, tokens}"
generate -q --checkpoint runs/first --max-tokens 12 --format text "To be, or"'
step 'Resume, for more steps' 0 12 <<< 'train --resume --out runs/first --steps 24 --allow-data-change --replan-schedule'
step 'Records as JSON' 0 8 <<< 'jq -c "select(.type == \"step\") | {step, loss_nats, tokens_per_s}" runs/first/metrics.jsonl | tail -n 3
jq -r ".loss | length" runs/first/training_metrics.json'
step 'Conversations, an adapter, a merged model, an answer' 0 60 <<< "head -n 40 gsm8k-train.jsonl > talks.jsonl
$root/scripts/finetune.sh --template plain --epochs 1 --lora 4 --seq 256 --out tuned runs/first/latest talks.jsonl -- --batch 2"
step 'The checkpoint, compressed and back' 0 10 <<< 'ckpt-compress -o model.twc tuned/model/model.safetensors
ckpt-compress -d -o again.safetensors model.twc
cmp again.safetensors tuned/model/model.safetensors'
step 'What the machine can do' 0 14 <<< 'gpu-probe --recommend'
step 'Is it faster?' 0 12 <<< 'bench --before "train -q --data shards --model llama-1m --steps 3 --seq 64 --batch 1 --out {dir}/r" --after "train -q --data shards --model llama-1m --steps 3 --seq 64 --batch 2 --out {dir}/r" --metric tokens_per_s --metric-file {dir}/r/metrics.jsonl --by tokens_per_s --budget 4 --output-check off'
if "$PYTHON" -c 'import mlflow, sqlalchemy' 2> /dev/null; then
  step 'MLflow reads it' 0 6 <<< "\$PYTHON $root/scripts/export_run.py mlflow runs/first 2> /dev/null
\$PYTHON -c 'import mlflow; c = mlflow.MlflowClient(\"sqlite:///mlflow.db\"); r = c.search_runs([\"1\"])[0]; print(mlflow.__version__, r.info.status, len(c.get_metric_history(r.info.run_id, \"loss_nats\")), \"losses\")' 2> /dev/null"
fi
if "$PYTHON" -c 'import tensorboard' 2> /dev/null; then
  step 'TensorBoard reads it' 0 4 <<< "\$PYTHON -c 'from tensorboard.backend.event_processing.event_accumulator import EventAccumulator as A; import tensorboard; a = A(\"runs/first/tb\").Reload(); print(tensorboard.__version__, a.Tags()[\"scalars\"], len(a.Scalars(\"loss/train\")), \"losses\")' 2> /dev/null"
fi
step 'Mistake: a name for a tokenizer' 4 4 <<< 'pretokenize --tokenizer gpt2 tinyshakespeare.txt'
step 'Mistake: text for shards' 3 4 <<< 'train --data gsm8k-train.jsonl --out runs/no'
step 'Mistake: a flag of transformers' 2 4 <<< 'train --learning-rate 1e-4 --data shards'
step 'Mistake: a key that is not there' 3 4 <<< 'pretokenize --key body gsm8k-train.jsonl -o no.tok'
step 'Mistake: another tokenizer' 3 4 <<< 'pretokenize -q tinyshakespeare.txt | pack -q --chunk 512 -o bytes/
evaluate --checkpoint runs/first --data bytes'
