# Where no batch was measured, gpu-probe recommends the batch, accumulation and length that train takes by itself.
seq 2000 > text
pretokenize -q text | pack -q --chunk 512 -o shards/
# agree WANTED-BATCH MODEL ARGUMENT...: that is the batch, with and without the recommendation, of a model that most
# machines are too slow to measure in time; where one is not, the step has the samples of a batch that was measured,
# or all is left to train.
agree() {
  local wanted=$1 model=$2 option by_itself advised
  shift 2
  gpu-probe -q --quick --disk-size 0 --device cpu --recommend --model "$model" "$@" > machine.yaml
  if ! grep -q '^# not measured' machine.yaml; then
    option=$(sed -n 's/^batch: //p' machine.yaml)
    test -z "$option" || test $((option * $(sed -n 's/^accum: //p' machine.yaml))) -ge 16
    return
  fi
  for option in batch accum seq; do
    by_itself=$(explained $option --device cpu --model "$model" "$@") by_itself=${by_itself% *}
    advised=$(sed -n "s/^$option: //p" machine.yaml)
    test -n "$by_itself" -a "$advised" = "$by_itself" || { echo "$model $*: $option '$advised', not '$by_itself'"; exit 1; }
    expect_explained "$advised config" $option --config machine.yaml
  done
  grep -qx "batch: $wanted" machine.yaml || { echo "$model $*"; cat machine.yaml; exit 1; }
}
agree 8 llama-125m --seq 256
agree 2 gpt2-124m
agree 1 llama-350m --seq 2048
agree 1 smollm2-135m  # of 8192 positions
# The length is part of what is recommended where it was given, for the batch is that of no other.
gpu-probe -q --quick --disk-size 0 --device cpu --recommend --seq 64 | grep -qx 'seq: 64'
