# SIGINT gives 130, SIGTERM and SIGHUP 143, and no output file appears. The tools wait for input that never comes.
set +e
mkfifo forever
for tool in pretokenize pack; do
  for signal in INT TERM HUP; do
    "$tool" -o out --summary summary.json < forever 2> err &
    pid=$!
    exec 3> forever
    # An input that has begun, so that the tool is past its start.
    test "$tool" = pack && pretokenize -q <<< 'to be' >&3
    sleep 0.3
    kill -s "$signal" "$pid"
    wait "$pid"
    echo "$tool $signal $?: $(ls -A | grep -v '^forever$\|^err$' | tr '\n' ' ')$(grep -c "stopped by SIG$signal" err)"
    exec 3>&-
    rm -f summary.json
  done
done
