#!/usr/bin/env bash
# The walk of a new user, from text to a merged fine-tune, with the mistakes that one makes: each command and its output.
#
# usage: scripts/compare/walk.sh > walk.md
#        scripts/compare/walk.sh --list
#
#   --list   prints the commands alone and runs none
#
# Works in an empty folder with the example data and the tools of build/release/bin; needs jq. Minutes on two processors. Set
# PYTHON to a Python with mlflow (and sqlalchemy), tensorboard and transformers (and sentencepiece) to have these read what was
# written; what is missing is left out, and the page says so.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

lists=no
case ${1:-} in
  -h | --help) print_usage; exit ;;
  --list) lists=yes ;;
  '') ;;
  *) die "unknown argument $1" "scripts/compare/walk.sh --help" ;;
esac
root=$PWD
export PATH=$root/build/release/bin:$PATH PYTHON=${PYTHON:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ln -s "$root"/examples/data/* "$folder"
cd "$folder"

# step TITLE STATUS LINES: the commands of standard input, their output as far as LINES, and that they end with STATUS. Blank lines
# that follow each other are shown as one.
step() {
  local title=$1 expected=$2 lines=$3 commands status=0 start=$SECONDS
  commands=$(cat)
  printf '\n## %s\n```\n' "$title"
  while IFS= read -r line; do printf '$ %s\n' "${line//"$root"/TRAINWRIGHT}"; done <<< "$commands"
  if [[ $lists == no ]]; then
    bash -euo pipefail -c "$commands" 2>&1 < /dev/null | sed "s#$root#TRAINWRIGHT#g; s#$folder#FOLDER#g" | cat -s > output ||
      status=${PIPESTATUS[0]}
    head -n "$lines" output
    (($(wc -l < output) <= lines)) || echo "[... $(($(wc -l < output) - lines)) lines more]"
  fi
  printf '```\n'
  [[ $lists == no ]] || return 0
  printf 'exit status %d, %d s\n' "$status" $((SECONDS - start))
  [[ $status = "$expected" ]] || die "'$title' ended with $status instead of $expected" "$(tail -n 3 output)"
}

# can_import TITLE PACKAGE...: whether PYTHON has these; a page without the step says so.
can_import() {
  [[ $lists == no ]] || return 0
  "$PYTHON" -c "import $(IFS=,; printf '%s' "${*:2}")" 2> /dev/null || {
    printf '\n## %s\nLeft out: PYTHON has not all of %s.\n' "$1" "${*:2}"
    return 1
  }
}

printf '# The walk of a new user\n'
[[ $lists == yes ]] || printf '%s, %s processors, %s\n' "$(date -u +%F)" "$(nproc)" "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)"
step 'Text to shards' 0 12 <<< 'pretokenize --format file --tokenizer mistral-v1.model tinyshakespeare.txt | pack --chunk 2048 -o shards/
pack --info shards/'
step 'A first training' 0 25 <<< 'train --data shards --model llama-1m --steps 20 --seq 128 --batch 4 --eval-split 0.05 --eval-every 10 --out runs/first'
step 'What it learned' 0 8 <<< 'evaluate -q --checkpoint runs/first --data shards --eval-split 0.05 | jq "{perplexity, bits_per_byte, tokens}"
generate -q --checkpoint runs/first --max-tokens 12 --format jsonl --prompt "To be, or" | jq -c "{prompt, text, finish}"'
step 'Resume, for more steps' 0 12 <<< 'train --resume --out runs/first --steps 24 --allow-data-change --replan-schedule'
step 'Records as JSON' 0 8 <<< 'jq --version
jq -c "select(.type == \"step\") | {step, loss_nats, tokens_per_s}" runs/first/metrics.jsonl | tail -n 3
jq -r ".loss | length" runs/first/training_metrics.json'
cat > talk.jinja << 'JINJA'
{%- for turn in messages -%}
  {%- if turn.role == 'assistant' -%}
    {{- 'assistant:\n' -}}{%- generation -%}{{- turn.content + eos_token -}}{%- endgeneration -%}
  {%- else -%}
    {{- turn.role + ':\n' + turn.content + '\n' -}}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- 'assistant:\n' -}}{%- endif -%}
JINJA
step 'Conversations, an adapter, a merged model, an answer' 0 70 <<< "cat talk.jinja
head -n 40 gsm8k-train.jsonl > talks.jsonl
$root/scripts/finetune.sh --template talk.jinja --epochs 1 --lora 4 --seq 256 --out tuned runs/first/latest talks.jsonl -- --batch 2"
step 'The checkpoint, compressed and back' 0 10 <<< 'ckpt-compress -o model.twc tuned/model/model.safetensors
ckpt-compress -d -o again.safetensors model.twc
cmp again.safetensors tuned/model/model.safetensors'
step 'What the machine can do' 0 14 <<< 'gpu-probe --recommend'
step 'Is it faster?' 0 12 <<< 'bench --before "train -q --data shards --model llama-1m --steps 3 --seq 64 --batch 1 --out {dir}/r" --after "train -q --data shards --model llama-1m --steps 3 --seq 64 --batch 2 --out {dir}/r" --metric tokens_per_s --metric-file {dir}/r/metrics.jsonl --by tokens_per_s --budget 4 --output-check off'
if can_import 'transformers opens it' transformers torch sentencepiece; then
  step 'transformers opens it' 0 6 <<< "\$PYTHON $root/scripts/compare/transformers_reads.py tuned/model talks.jsonl 2> /dev/null"
fi
if can_import 'MLflow reads it' mlflow sqlalchemy; then
  step 'MLflow reads it' 0 6 <<< "\$PYTHON $root/scripts/export_run.py mlflow runs/first 2> /dev/null
\$PYTHON -c 'import mlflow; c = mlflow.MlflowClient(\"sqlite:///mlflow.db\"); r = c.search_runs([\"1\"])[0]; print(mlflow.__version__, r.info.status, len(c.get_metric_history(r.info.run_id, \"loss_nats\")), \"losses\")' 2> /dev/null"
fi
if can_import 'TensorBoard reads it' tensorboard; then
  step 'TensorBoard reads it' 0 4 <<< "\$PYTHON -c 'from tensorboard.backend.event_processing.event_accumulator import EventAccumulator as A; import tensorboard; a = A(\"runs/first/tb\").Reload(); print(tensorboard.__version__, a.Tags()[\"scalars\"], len(a.Scalars(\"loss/train\")), \"losses\")' 2> /dev/null"
fi
step 'Mistake: a name for a tokenizer' 4 4 <<< 'pretokenize --tokenizer gpt2 tinyshakespeare.txt'
step 'Mistake: text for shards' 3 4 <<< 'train --data gsm8k-train.jsonl --out runs/no'
step 'Mistake: a flag of transformers' 2 4 <<< 'train --learning-rate 1e-4 --data shards'
step 'Mistake: a key that is not there' 3 4 <<< 'pretokenize --key body gsm8k-train.jsonl -o no.tok'
step 'Mistake: another tokenizer' 3 4 <<< 'pretokenize -q tinyshakespeare.txt | pack -q --chunk 512 -o bytes/
evaluate --checkpoint runs/first --data bytes'
