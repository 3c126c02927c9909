#!/usr/bin/env bash
# Fine-tunes a Hugging Face model on conversations: tokenizes, packs, trains adapters, merges them, and shows an answer.
#
# usage: scripts/finetune.sh [--out DIR] [--epochs N] [--lora R] [--seq N] [--template NAME|FILE] MODEL DATA.jsonl
#                            [-- TRAIN_OPTION...]
#
#   MODEL          folder of the model, as transformers writes it, with its tokenizer
#   DATA.jsonl     a JSON line a conversation: "messages", "prompt" and "response", "question" and "answer", or "instruction"
#                  and "output"
#   --out DIR      where everything goes (default: finetuned/): DIR/run is the training run, DIR/model the merged model, which
#                  transformers opens
#   --epochs N     passes over the data (default: 3)
#   --lora R       rank of the adapters (default: 16)
#   --seq N        longest conversation in tokens; longer ones are left out, and counted (default: 2048, or what the model has)
#   --template T   how conversations are written, as pretokenize --template (default: by the model's own chat template; a model
#                  whose folder has none needs it, and plain will do for one that has seen no conversation)
#   TRAIN_OPTION   of train(1), as --quant nf4, --lr 1e-4, --batch 4 or --eval-split 0.05
#
# May be stopped at any moment and run again with the same arguments: what is done is not done twice, and training goes on where
# it was. After a longer run DIR/model is merged again, and replaced. The tools are those of PATH, or else of build/release.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/common.sh
source "$root/scripts/common.sh"

out=finetuned epochs=3 lora=16 seq='' template='' arguments=()
while (($#)); do
  case $1 in
    -h | --help) cd "$root" && print_usage && exit 0 ;;
    --out) out=${2:?--out needs a folder}; shift ;;
    --epochs) epochs=${2:?--epochs needs a number}; shift ;;
    --lora) lora=${2:?--lora needs a rank}; shift ;;
    --seq) seq=${2:?--seq needs a number}; shift ;;
    --template) template=${2:?--template needs a name or a file}; shift ;;
    --) shift; break ;;
    -*) die "unknown argument $1" "scripts/finetune.sh --help" ;;
    *) arguments+=("$1") ;;
  esac
  shift
done
[[ ${#arguments[@]} = 2 ]] || die "takes a model and a file of conversations" "scripts/finetune.sh --help"
model=${arguments[0]} data=${arguments[1]}
[[ -e $model/config.json ]] || die "$model is no folder of a model: it has no config.json" "save_pretrained() of transformers writes one"
[[ -r $data ]] || die "$data cannot be read"
[[ -f $data ]] || die "$data is no file, and it is read more than once" "write what comes from it to a file"
command -v train > /dev/null || export PATH=$root/build/release/bin:$PATH
command -v train > /dev/null || die "there is no train" "scripts/quickstart.sh builds the tools"
[[ $seq ]] || seq=$(python3 -c '
import json, sys
lengths = []
try:
    lengths = map(json.load(open(sys.argv[1])).get, ("max_position_embeddings", "n_positions"))
except (ValueError, AttributeError):
    pass  # train says what is wrong with it, below
print(min(2048, next((n for n in lengths if type(n) is int and n > 0), 2048)))' "$model/config.json")
mkdir -p "$out"

# hash_of FILE...: of the files' names and contents; files that are missing count, too.
hash_of() {
  local file
  for file; do
    printf '%s ' "${file##*/}"
    if [[ -f $file ]]; then sha256sum < "$file"; else echo none; fi
  done | sha256sum
}

# What shapes the shards: a name may stay where its content does not.
shaping=("$model"/{config.json,chat_template.jinja,tokenizer_config.json,tokenizer.json,tokenizer.model,tokenizer.tiktoken})
[[ -z $template ]] || shaping+=("$template" "$template"/{chat_template.jinja,tokenizer_config.json} "$(dirname "$template")/tokenizer_config.json")
for file in "$model"/additional_chat_templates/*.jinja ${template:+"$template"/additional_chat_templates/*.jinja}; do
  [[ ! -e $file ]] || shaping+=("$file")
done
of_data=$(sha256sum < "$data")
# record_of FILE...: what made-of says of the data, these files and the options.
record_of() { echo "$of_data $(hash_of "$@") $seq${template:+ $template}"; }
made_of=$(record_of "${shaping[@]}" "$model"/{special_tokens_map.json,added_tokens.json})
# Where nothing came of it, other data may take its place.
if [[ (-e $out/data/MANIFEST.json || -e $out/run) && -e $out/made-of ]]; then
  recorded=$(< "$out/made-of")
  # Earlier versions did not record the last two files.
  [[ $recorded == "$made_of" || $recorded == "$(record_of "${shaping[@]}")" ]] ||
    die "$out was made of other conversations, of another model or with another --seq or --template" "--out names another folder"
fi

# require_model: what train does not take of the model is found by data of one line, before all conversations are tokenized.
# What variables say of the run is not asked here: adapters and conversations, which they may need, are not part of this.
require_model() (
  unset "${!TRAINWRIGHT_@}"
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  pretokenize -q --tokenizer "$model" -o "$scratch/tokens" <<< 'A line.'
  pack -q --chunk 64 "$scratch/tokens" -o "$scratch/shards.tws"
  train -q --explain --init "$model" --data "$scratch/shards.tws" --device cpu --kernels usual --steps 1 --batch 1 --accum 1 \
    > /dev/null
)
[[ -e $out/data/MANIFEST.json ]] || require_model

# why_none SUMMARY: what became of the conversations, of which pretokenize kept none; nothing where it kept some.
why_none() {
  python3 -c '
import json, sys
told = json.load(open(sys.argv[1]))
if told["documents"] == 0:
    lost = {f"longer than --seq {sys.argv[2]} tokens": told["over_max_chars"] + told["over_max_record_tokens"],
            "without an answer": told["skipped_by_reason"].pop("empty_response"),
            "without the keys of a conversation": told["skipped_by_reason"].pop("missing_key"),
            "that are no JSON object": told["skipped_by_reason"].pop("bad_json"), **told["skipped_by_reason"]}
    print(", ".join(f"{count} {what}" for what, count in lost.items() if count) or "it is empty")' "$1" "$seq"
}

heading "1/4 Conversations to shards"
if [[ ! -e $out/data/MANIFEST.json ]]; then
  run pretokenize --records sft --tokenizer "$model" --max-record-tokens "$seq" --on-error skip ${template:+--template "$template"} \
    "$data" -o "$out/data.tokens" --summary "$out/data.json"
  none=$(why_none "$out/data.json")
  # With the status that tools give bad input.
  [[ ! $none ]] || (die "$data has no conversation to train on: $none" \
    "--seq N takes longer ones; a line is a JSON object with messages, prompt and response, question and answer, or instruction and
output; of a file that is one JSON list, jq -c '.[]' makes lines") || exit 3
  printf '%s\n' "$made_of" > "$out/made-of"
  run pack --chunk "$seq" "$out/data.tokens" -o "$out/data/"
fi

heading "2/4 Training"
run train --resume --data "$out/data" --init "$model" --lora "$lora" --objective sft --seq "$seq" --epochs "$epochs" "$@" \
  --out "$out/run"

# merged_adapter: the sha256 of the adapter that the merged model was made from; nothing where the model does not say.
merged_adapter() {
  python3 -c '
import json, sys
try:
    inputs = json.load(open(sys.argv[1]))["provenance"]["inputs"]
    print(*(one["files"][sys.argv[2]] for one in inputs if sys.argv[2] in one["files"]))
except (OSError, ValueError, LookupError, TypeError, AttributeError):
    pass  # of another program, or an earlier version' "$out/model/metadata.json" adapter_model.safetensors
}

heading "3/4 Merging"
if [[ -e $out/model/config.json ]]; then
  merged=$(merged_adapter)
  adapter=$(sha256sum < "$out/run/latest/adapter_model.safetensors")
  if [[ $merged && $merged != "${adapter%% *}" ]]; then
    say "$out/model is of an earlier checkpoint of $out/run, and gives way"
    rm -rf "$out/model.new"
    run train --merge "$out/run" --out "$out/model.new"
    rm -r "$out/model"
    mv "$out/model.new" "$out/model"
  else
    say "$out/model is there already: remove it to merge again"
  fi
else
  run train --merge "$out/run" --out "$out/model"
fi

heading "4/4 An answer"
# The words of the first user are those that pretokenize reads, whatever shape the data has. Of 64 conversations the
# first is taken whose question surely fits, else that with the shortest.
cat > "$out/question.jinja" << 'JINJA'
{%- for turn in messages -%}
  {%- if turn.role == 'user' -%}
    {{- turn.content if turn.content is string else turn.content | selectattr('type', 'equalto', 'text') | map(attribute='text')
        | join(' ') -}}
  {%- elif turn.role == 'assistant' -%}
    {% generation %}{{ turn.content }}.{% endgeneration %}
  {%- endif -%}
{%- endfor -%}
JINJA
question=$(pretokenize -q --records sft --tokenizer bytes --template "$out/question.jinja" --on-error skip --limit 64 "$data" |
  pretokenize -q --decode --to jsonl | python3 -c '
import json, sys
said = []
for line in sys.stdin.buffer:
    segments = json.loads(line)["segments"]
    if segments and not segments[0]["loss"]:
        said.append(" ".join(segments[0]["text"].split()).encode())
said = [words for words in said if words]
fitting = [words for words in said if len(words) <= int(sys.argv[1])]
sys.stdout.buffer.write(fitting[0] if fitting else min(said, key=len, default=b""))' "$seq") || question=''
rm -f "$out/question.jinja"
if [[ $question ]]; then
  printf '%s\n' "$question"
  printf '%s\n' "$question" | run generate --chat --checkpoint "$model" --adapter "$out/run" --max-tokens 64 --format text
else
  say "no question was found in $data to show an answer to"
fi
say "the model is $out/model, its adapter $out/run; losses are in $out/run/metrics.jsonl"
