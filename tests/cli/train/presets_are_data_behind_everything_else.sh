# --preset: its values are those of the sources, stand behind flags, environment and --config, and reload.
value() { grep "^$1: " | sed 's/^[^:]*: //; s/"//g'; }
expect() { # expect KEY VALUE ARGUMENT...
  local key=$1 wanted=$2 got
  shift 2
  got=$(train --print-config "$@" 2> /dev/null | value "$key")
  [[ $got == "$wanted" ]] || { echo "$*: $key is '$got', not '$wanted'"; exit 1; }
}
names="refocused-test refocused-production refocused-low-memory rft-baseline rft-batch-a rft-batch-b rft-fast
       rft-conservative rft-balanced rft-aggressive rft-accurate test production low-memory lora-fast grit-fast grit-toy grit-7b grit-7b-lora
       ten-small-32k ten-medium-32k ten-large-32k"
for name in $names; do
  train --list-presets | grep -q "^$name  *[a-zA-Z]" || { echo "$name is not listed"; exit 1; }
done
test "$(train --list-presets | wc -l)" = 22

# name, batch, accum, log-every, save-every, lr, warmup, schedule, workers
while read -r name batch accum log save lr warmup schedule workers; do
  expect batch "$batch" --preset "$name"
  expect accum "$accum" --preset "$name"
  expect log-every "$log" --preset "$name"
  expect save-every "$save" --preset "$name"
  expect lr "$lr" --preset "$name"
  expect warmup "$warmup" --preset "$name"
  expect schedule "$schedule" --preset "$name"
  expect workers "$workers" --preset "$name"
  train --preset "$name" --print-config > a.yaml 2> /dev/null
  train --config a.yaml --print-config 2> /dev/null | cmp a.yaml -
done << 'END'
refocused-test 2 2 25 200 2e-4 10 cosine 4
refocused-production 4 8 100 500 2e-4 10 cosine 4
refocused-low-memory 1 32 100 500 2e-4 10 cosine 2
rft-baseline 32 1 10 epoch 2e-4 0 linear 0
rft-batch-a 64 1 50 epoch 2e-4 50 cosine 4
rft-batch-b 8 8 50 epoch 2e-4 50 cosine 4
rft-fast 16 4 50 epoch 2e-4 50 cosine 4
rft-conservative 16 4 50 epoch 2e-4 50 cosine 4
rft-balanced 16 4 50 epoch 2e-4 50 cosine 4
rft-aggressive 32 2 50 epoch 2e-4 50 cosine 6
rft-accurate 16 8 50 epoch 2e-4 50 cosine 4
END

expect epochs 4 --preset rft-accurate
expect tf32 on --preset rft-fast
while read -r name checkpointing compile; do
  expect checkpoint-activations "$checkpointing" --preset "$name"
  expect compile "$compile" --preset "$name"
done << 'END'
rft-conservative full off
rft-balanced no auto
rft-aggressive no auto
END
# The guide's names of its presets.
for name in test production low-memory; do
  train --preset $name --print-config 2> /dev/null | sed "s/^preset: .*//" > a.yaml
  train --preset refocused-$name --print-config 2> /dev/null | sed "s/^preset: .*//" | cmp a.yaml -
done

# grit-fast is these five levers and nothing else.
config() { train --print-config "$@" 2> /dev/null | grep '^[a-z]' | grep -v '^preset:' | sed 's/"//g' | sort; }
test "$(comm -13 <(config) <(config --preset grit-fast) | paste -sd' ')" = \
  "checkpoint-activations: full compile: auto mixed-precision: bf16 pin: on workers: 4"
for expected in "mode unified" "group-size 2" "query-max-len 256" "passage-max-len 2048" "steps 1253" "lr 2e-5" "gen-batch 4"; do
  expect $expected --preset grit-7b  # a key and its value
done
for expected in "lora 16" "lora-alpha 64" "lora-dropout 0.1" "lora-targets q_proj,k_proj,v_proj,o_proj" "steps 1253"; do
  expect $expected --preset grit-7b-lora
done
for expected in "model ten-small-32k" "seq 32768" "batch 4" "accum 4" "lr 3e-4" "schedule one-cycle" "warmup-ratio 0.1" \
  "clip 1" "checkpoint-activations full"; do
  expect $expected --preset ten-small-32k
done
expect accum 8 --preset ten-medium-32k
expect accum 16 --preset ten-large-32k
expect lr 1e-5 --preset grit-toy
expect drop-last true --preset grit-toy

# Precedence, and options that exclude each other.
printf 'lr: 0.3\nbatch: 5\naccum: 7\n' > c.yaml
expect lr 0.3 --preset rft-fast --config c.yaml
expect keep 1 --preset rft-fast --config c.yaml
TRAINWRIGHT_BATCH=6 expect batch 6 --preset rft-fast --config c.yaml
TRAINWRIGHT_BATCH=6 expect batch 8 --preset rft-fast --config c.yaml --batch 8
TRAINWRIGHT_PRESET=rft-aggressive expect workers 6
printf 'preset: rft-aggressive\n' > d.yaml
expect workers 6 --config d.yaml
expect workers 4 --config d.yaml --preset rft-balanced
expect steps 9 --preset rft-fast --steps 9
test -z "$(train --preset rft-fast --steps 9 --print-config 2> /dev/null | value epochs)"
expect model neox-1.4b --preset refocused-production
test -z "$(train --preset refocused-production --init folder --print-config 2> /dev/null | value model)"

status=0
train --preset rft-fats --print-config 2> error || status=$?
test "$status" = 2
grep -q 'did you mean rft-fast' error
# A preset with options of this build's lacking is refused or tells.
train --help > help  # more than a pipe holds, which grep -q would close
if ! grep -q -- '--lora ' help; then
  status=0
  train --preset lora-fast --print-config 2> error || status=$?
  test "$status" = 2
  grep -q 'needs --lora, which this build does not have' error
fi
