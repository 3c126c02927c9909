# Ranks that would compute something else are refused by the option that differs, before a model is looked for.
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 TRAINWRIGHT_THREADS=1 TRAINWRIGHT_DIST_TIMEOUT=20
# differ OPTION OF-RANK-1 OF-RANK-0 COMMAND...
differ() {
  local option=$1 one=$2 zero=$3 status=0 pid
  shift 3
  export MASTER_PORT
  MASTER_PORT=$(free_port)
  RANK=0 "$@" $zero > out0 2> err0 &
  pid=$!
  RANK=1 "$@" $one > out1 2> err1 || status=$?
  test "$status" = 2 || { echo "$*: rank 1 ends with $status"; cat err0 err1; exit 1; }
  status=0
  wait $pid || status=$?
  test "$status" = 4 || { echo "$*: rank 0 ends with $status"; cat err0 err1; exit 1; }
  grep -q -e "rank 1: $option is " err0 || { echo "$*: does not name $option"; cat err0; exit 1; }
}
generate='generate --checkpoint missing --batch-invariant'
differ --prompt '--prompt a' '--prompt b' $generate
differ --temperature '--temperature 1' '' $generate --prompt a
differ --context-cache '--context-cache kept' '' $generate --input missing.jsonl
