#!/usr/bin/env bash
# Kills `train` at random moments with SIGKILL, resumes it, and compares its last weights with an undisturbed run's.
#
# usage: scripts/compare/kill_resume.sh [KILLS] [SEED]     (default: 5 kills for each precision, seed 1)
#
# Runs fp32, bf16 and fp16. Exits 1 when a hash of the final model.safetensors differs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

kills=${1:-5}
RANDOM=${2:-1}
bin=$(cd "${TRAINWRIGHT_BIN:-build/release/bin}" && pwd) || die "the tools are not built" "cmake --build --preset release"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
data=$PWD/examples/data
cd "$scratch"

"$bin/pretokenize" --quiet "$data/tinyshakespeare.txt" | "$bin/pack" --quiet --chunk 4096 -o shards/

hash_of() { sha256sum < "$1/latest/model.safetensors" | cut -c 1-16; }

status=0
for precision in no bf16 fp16; do
  train=("$bin/train" --quiet --model llama-1m --seq 128 --batch 2 --accum 2 --steps 60 --save-every 5
    --mixed-precision "$precision")
  start=$(date +%s%N)
  "${train[@]}" --out "whole-$precision"
  duration_ms=$((($(date +%s%N) - start) / 1000000))
  want=$(hash_of "whole-$precision")

  done_kills=0
  while ((done_kills < kills)); do
    "${train[@]}" --out "killed-$precision" --resume &
    pid=$!
    delay_ms=$((300 + (RANDOM * 32768 + RANDOM) % (duration_ms / 2)))
    sleep "$((delay_ms / 1000)).$(printf '%03d' $((delay_ms % 1000)))"
    kill -KILL "$pid" 2> /dev/null || true
    wait "$pid" 2> /dev/null && break  # it had finished
    done_kills=$((done_kills + 1))
  done
  "${train[@]}" --out "killed-$precision" --resume
  got=$(hash_of "killed-$precision")
  say "$precision: $done_kills kills, undisturbed $want, resumed $got"
  [[ $got == "$want" ]] || status=1
done
((status == 0)) || die "a resumed run is not the run it resumed"
