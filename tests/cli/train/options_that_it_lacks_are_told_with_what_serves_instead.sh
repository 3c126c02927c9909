# Options of other trainers are no options here; the hint says why and names what there is.
refused() {  # OPTION TEXT...
  local option=$1 status=0
  shift
  train "$option" 2 --data none 2> err > /dev/null || status=$?
  test "$status" = 2 || { echo "$option: status $status"; cat err; exit 1; }
  grep -q -e "^train: error: $option: unknown option" err || { cat err; exit 1; }
  for text in "$@"; do grep -q -e "$text" err || { echo "$option: no '$text'"; cat err; exit 1; }; done
}
refused --tensor-parallel 'not divided among ranks' '--zero' PARALLELISM
refused --pipeline-parallel 'layers are not divided' '--zero' PARALLELISM
refused --max-tokens 'without padding' '--accum' '--max-tokens-per-batch'
