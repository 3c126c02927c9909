#!/usr/bin/env bash
# Kills `train` at random moments with SIGKILL, resumes it each time, and compares its last weights with those
# of an undisturbed run.
#
# usage: [KINDS="lm sft lora qlora"] scripts/compare/kill_resume.sh [KILLS] [SEED] [PRECISION...]
#        (default: KINDS=lm, 50 1 no bf16 fp16)
#
# The undisturbed run writes its checkpoints in the foreground, the killed ones in the background.
# A small model that saves at every step spends much of its time in saves; a kill that leaves a temporary
# checkpoint folder, or a temporary latest, fell into one. A run that ends before all its kills is followed by
# another. Prints what it counted. Exits 1 when the weights or the state of a resumed run differ, or, of lm, when fewer
# than a third of the kills fell into a save. sft trains on the answers of grade-school problems; lora and qlora train
# adapters beside a base that the script trains first.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

kills=${1:-50}
RANDOM=${2:-1}
precisions=("${@:3}")
((${#precisions[@]})) || precisions=(no bf16 fp16)
bin=$(cd "${TRAINWRIGHT_BIN:-build/release/bin}" && pwd) || die "the tools are not built" "cmake --build --preset release"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
data=$PWD/examples/data template=$PWD/examples/rft/qa.template
kinds=${KINDS:-lm}
cd "$scratch"

head -n 4000 "$data/tinyshakespeare.txt" | "$bin/pretokenize" --quiet - | "$bin/pack" --quiet --chunk 1024 -o shards/
cat > model.json << 'EOF'
{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 258, "hidden_size": 64,
 "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 32,
 "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": true,
 "hidden_act": "silu"}
EOF

head -n 200 "$data/gsm8k-train.jsonl" |
  "$bin/pretokenize" --quiet --records sft --template "$template" - | "$bin/pack" --quiet --chunk 1024 --overflow drop -o answers/
sed 's/"max_position_embeddings": 128/"max_position_embeddings": 1024/' model.json > long.json

# Weights or adapters, and the state.
hash_of() { cat "$1"/latest/*.safetensors | sha256sum | cut -c 1-16; }

status=0
for kind in $kinds; do for precision in "${precisions[@]}"; do
  train=("$bin/train" --quiet --batch 2 --accum 2 --save-every 1 --keep 2 --mixed-precision "$precision")
  lm=(--data shards --seq 128 --steps 200)
  case $kind in
    lm) train+=(--model model.json "${lm[@]}") ;;
    sft) train+=(--model long.json --data answers --seq 1024 --steps 60) ;;
    lora | qlora)
      [[ -e base ]] || "$bin/train" --quiet --model model.json "${lm[@]}" --steps 20 --out base
      train+=(--init base "${lm[@]}" --lora 4 --lora-dropout 0.1)
      [[ $kind == lora ]] || train+=(--quant nf4) ;;
    *) die "$kind is no kind of run" "KINDS takes lm, sft, lora and qlora" ;;
  esac
  "${train[@]}" --async-save off --out whole
  want=$(hash_of whole)

  killed=0 in_save=0 before_step=0 runs=0 same=0
  while ((killed < kills)); do
    "${train[@]}" --async-save on --out killed --resume &
    pid=$!
    delay_ms=$((200 + RANDOM % 1300))
    sleep "$((delay_ms / 1000)).$(printf '%03d' $((delay_ms % 1000)))"
    kill -KILL "$pid" 2> /dev/null || true
    if wait "$pid" 2> /dev/null; then  # it had finished
      runs=$((runs + 1))
      [[ $(hash_of killed) != "$want" ]] || same=$((same + 1))
      rm -r killed
      continue
    fi
    killed=$((killed + 1))
    if compgen -G 'killed/checkpoints/.step-*' > /dev/null || compgen -G 'killed/.latest.new' > /dev/null; then
      in_save=$((in_save + 1))
    elif [[ ! -e killed/latest ]]; then
      before_step=$((before_step + 1))
    fi
  done
  "${train[@]}" --async-save on --out killed --resume
  runs=$((runs + 1))
  got=$(hash_of killed)
  [[ $got != "$want" ]] || same=$((same + 1))
  say "$kind, $precision: $killed kills, $in_save of them in a save, $before_step before the first checkpoint;" \
    "$same of $runs resumed runs as undisturbed: $want, last $got"
  ((same == runs)) || status=1
  [[ $kind != lm ]] || ((3 * in_save >= killed)) || status=1
  rm -r whole killed
done; done
((status == 0)) || die "a resumed run is not the run it resumed, or too few kills fell into a save"
