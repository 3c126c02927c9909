# An option on the command line that the metric has no use for is refused by name, with the metrics that have it.
printf 'q1 0 d1 1\n' > qrels
printf 'q1 Q0 d1 1 0.9 x\n' > run
printf '{"prompt": "1 + 1", "sample": "2"}\n' > samples
refused() {  # OPTION METRICS ARGUMENT...
  local option=$1 metrics=$2 status=0
  shift 2
  evaluate -q "$@" > out 2> err < /dev/null || status=$?
  test "$status" = 2 || { echo "$*: status $status"; cat err; exit 1; }
  grep -q -e "$option: has no meaning for --metric" err || { cat err; exit 1; }
  grep -q -e "it is for --metric $metrics\$" err || { cat err; exit 1; }
}
retrieval=(--metric retrieval --run run --qrels qrels)
answers=(--metric answers --samples samples --gold samples)
refused --seq perplexity "${retrieval[@]}" --seq 16
refused --min-accuracy answers "${retrieval[@]}" --min-accuracy 0.5
refused --top-k retrieval "${answers[@]}" -k 5
refused --pooling 'retrieval or sts' "${answers[@]}" --pooling cls
refused --mixed-precision 'perplexity, retrieval or sts' "${answers[@]}" --mixed-precision bf16
status=0
evaluate -q "${retrieval[@]}" --pooling cls > out 2> err || status=$?
test "$status" = 2 && grep -q -e '--pooling: has a meaning only with --checkpoint' err || { cat err; exit 1; }
# What is set for several runs is not refused.
printf 'seq: 16\n' > evaluate.yaml
TRAINWRIGHT_BATCH=2 evaluate -q "${retrieval[@]}" --config evaluate.yaml > /dev/null
