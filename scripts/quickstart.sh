#!/usr/bin/env bash
# From nothing to a trained model on real text: sets up, builds, and runs the suite's main job on GSM8K.
#
# usage: scripts/quickstart.sh [--tokens N] [DIR]
#
# Works in DIR (default: quickstart/) and trains on N tokens (default: 600000, about half of the data). Takes under 25
# minutes on two cores, of which about six are training. May be stopped at any moment and run again: what is done is not
# done twice, and a training run goes on where it was. Where an NVIDIA driver and CUDA 13's nvcc are, it trains on the GPU: what
# LibTorch needs for that is fetched, too (2 GB).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

tokens=600000 work=quickstart
while (($#)); do
  case $1 in
    -h | --help) print_usage; exit 0 ;;
    --tokens) tokens=${2:?--tokens needs a number}; shift ;;
    -*) die "unknown argument $1" "scripts/quickstart.sh --help" ;;
    *) work=$1 ;;
  esac
  shift
done
[[ $tokens =~ ^[1-9][0-9]{0,17}$ ]] || die "--tokens: '$tokens' is no number of tokens"
begun=$work/runs/quickstart/run.json
if [[ -e $begun ]] && ! grep -q "\"length_rule\": \"tokens $tokens\"" "$begun"; then
  die "$work/runs/quickstart is a run of another number of tokens than $tokens: $(grep -o '"length_rule": [^,]*' "$begun")" \
    "give that number as --tokens, or another DIR"
fi
[[ ! -e $work/data || -L $work/data ]] ||
  die "$work/data is there already, where a link to the example's data belongs" "give another DIR"
mkdir -p "$work"
work=$(cd "$work" && pwd)
root=$PWD

heading "1/5 Set-up"
scripts/setup.sh
cuda=() settings=() plugin=()
if sees_nvidia_driver; then
  if has_cuda_13; then
    cuda=(--cuda) settings=(-DTRAINWRIGHT_CUDA=ON) plugin=(trainwright_cuda)
  else
    say "there is an NVIDIA driver and no nvcc of CUDA 13: trains on the CPU (a CUDA 13 toolkit builds the plugin for the GPU)"
    settings=(-DTRAINWRIGHT_CUDA=OFF)  # a folder keeps what an earlier try has set
  fi
fi
scripts/fetch_libtorch.sh "${cuda[@]}"

heading "2/5 Build"
# A folder with tests keeps them. CMake writes this file when it has configured one; its cache, when it has failed, too.
[[ -e build/release/CTestTestfile.cmake ]] || settings+=(-DTRAINWRIGHT_TESTS=OFF)
configure release "${settings[@]}"
build release pretokenize pack train evaluate generate embed ckpt-compress gpu-probe bench "${plugin[@]}"

# What follows is what a user would type, in this folder and with these tools in PATH.
cd "$work"
export PATH=$root/build/release/bin:$PATH
ln -sfn "$root/examples/data" data

# type_in COMMAND_LINE: shows the line, then runs it.
type_in() {
  printf '%s$ %s%s\n' "$bold" "$1" "$reset" >&2
  bash -euo pipefail -c "$1"
}

heading "3/5 Text to shards"
if [[ -e shards/MANIFEST.json && -e val/MANIFEST.json ]]; then
  say "shards/ and val/ are there"
else
  type_in 'pretokenize --tokenizer data/mistral-v1.model --key question --key answer --eos \
    --holdout 0.1 --holdout-output val.tokens data/gsm8k-train.jsonl | pack --chunk 32768 -o shards/'
  type_in 'pack --chunk 4096 -o val/ val.tokens'
fi

heading "4/5 Training"
train="train --mixed-precision bf16 --accum 8 --batch 2 --tokens $tokens --eval-data val/ --eval-every 0 --out runs/quickstart"
[[ ! -e runs/quickstart ]] || train+=' --resume'
type_in "$train"

heading "5/5 Evaluation and a sample"
type_in 'evaluate --checkpoint runs/quickstart --data val/ > evaluation.json'
type_in 'generate --checkpoint runs/quickstart --max-tokens 80 \
    --prompt "Anna has 12 apples. She buys 3 bags with 4 apples each. How many apples does Anna have now?" > sample.jsonl'

heading "Result"
python3 - << 'PYTHON'
import json
import textwrap

with open("runs/quickstart/metrics.jsonl", encoding="utf-8") as lines:
    records = [json.loads(line) for line in lines]
before = next(record for record in records if record["type"] == "eval" and record["step"] == 0)
with open("evaluation.json", encoding="utf-8") as file:
    after = json.load(file)
with open("sample.jsonl", encoding="utf-8") as file:
    sample = json.loads(file.readline())

print("Validation: the 10 % of GSM8K's lines that training has not seen")
print(f"{'':24}{'before':>12}{'after':>12}")
for label, name, digits in (("loss, nats a token", "loss_nats", 3), ("perplexity", "perplexity", 1),
                            ("bits per byte", "bits_per_byte", 3)):
    print(f"  {label:22}{before[name]:12,.{digits}f}{after[name]:12,.{digits}f}")
print("\nA greedy sample, the prompt first")
for line in (sample["prompt"] + sample["text"]).splitlines():
    print(textwrap.fill(line, 100, initial_indent="  ", subsequent_indent="  "))
PYTHON

heading "Next"
cat << END
The tools, their man pages and completions for every folder, without root:
  cmake --install $root/build/release --prefix ~/.local && export PATH=~/.local/bin:\$PATH
Data of your own, a JSON line {"text": "..."} a document, in three commands:
  pretokenize --tokenizer data/mistral-v1.model own.jsonl | pack --chunk 32768 -o own/
  train --data own/ --mixed-precision auto --out runs/own
  generate --checkpoint runs/own "..."
A model of your own, tuned on your conversations:
  $root/scripts/finetune.sh path/to/model talks.jsonl
How they work: man train, and README.md
END
