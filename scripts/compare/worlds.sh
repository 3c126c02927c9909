#!/usr/bin/env bash
# What `train --dry-run --world` tells of 8, 64 and 512 GPUs that train models of 1, 8 and 70 billion parameters.
#
# usage: scripts/compare/worlds.sh [--bandwidth RATE] [--latency TIME] [--tflops T] [--memory SIZE] [OUT.md]
#
#   --bandwidth RATE  that a GPU sends and receives at once (default: 50GB: a 400 Gbit/s port each)
#   --latency TIME    of a message (default: 20us)
#   --tflops T        1e12 operations a second that a GPU reaches (default: 400)
#   --memory SIZE     of a GPU (default: 80GiB)
#   OUT.md            where the report goes (default: standard output)
#
# The shapes are Llama 3's, the smallest Llama 3.2's with 1.24 billion. Nothing is run, and no GPU is needed. TRAINWRIGHT_BIN
# names the folder of the tools.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

bandwidth=50GB latency=20us tflops=400 memory=80GiB out=/dev/stdout
while (($#)); do
  case $1 in
    -h | --help) print_usage; exit 0 ;;
    --bandwidth) bandwidth=$2; shift 2 ;;
    --latency) latency=$2; shift 2 ;;
    --tflops) tflops=$2; shift 2 ;;
    --memory) memory=$2; shift 2 ;;
    -*) die "unknown argument $1" "scripts/compare/worlds.sh --help" ;;
    *) out=$(realpath "$1"); shift ;;
  esac
done
bin=$(cd "${TRAINWRIGHT_BIN:-build/release/bin}" && pwd) || die "the tools are not built" "cmake --build --preset release"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
data=$PWD/examples/data/tinyshakespeare.txt
cd "$scratch"
head -n 2000 "$data" | "$bin/pretokenize" --quiet - | "$bin/pack" --quiet --chunk 1024 -o shards/

# config NAME HIDDEN INNER LAYERS HEADS TIED
config() {
  cat > "$1.json" << END
{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 128256, "hidden_size": $2,
 "intermediate_size": $3, "num_hidden_layers": $4, "num_attention_heads": $5, "num_key_value_heads": 8,
 "head_dim": $(($2 / $5)), "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "rope_theta": 500000.0,
 "tie_word_embeddings": $6, "hidden_act": "silu"}
END
}
config 1b 2048 8192 16 32 true
config 8b 4096 14336 32 32 false
config 70b 8192 28672 80 64 false
sed 's/"max_position_embeddings": 8192/"max_position_embeddings": 131072/' 8b.json > 8b-128k.json

# tell NAME TITLE OPTION...: status 1 means that something does not fit, which is an answer, too.
tell() {
  local name=$1 title=$2 status=0
  shift 2
  local command=(train --quiet --model "$name.json" --mixed-precision bf16 "$@" --steps 100 --dry-run
    --world '8,64,512' --bandwidth "$bandwidth" --latency "$latency" --device-tflops "$tflops" --device-memory "$memory")
  printf '\n## %s\n\n```\n$ %s\n' "$title" "$(quote "${command[@]}")"
  "$bin/train" "${command[@]:1}" || status=$?
  printf '```\n\nExit status %s.\n' "$status"
  ((status <= 1)) || die "train ended with $status"
}
{
  printf '# Ranks on paper, %s\n' "$(date -u +%F)"
  tell 1b '1.24 billion parameters' --seq 8192 --batch 4
  tell 8b '8.03 billion parameters' --seq 8192 --batch 2 --accum 2 --zero 2 --checkpoint-activations full
  tell 70b '70.6 billion parameters' --seq 8192 --batch 1 --accum 2 --zero 2 --checkpoint-activations full
  tell 8b-128k '8.03 billion parameters, 128 Ki tokens a sample' --seq 131072 --batch 1 --zero 2
} > "$out"
