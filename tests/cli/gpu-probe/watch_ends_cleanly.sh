# A counted watch ends by itself; SIGINT ends an endless one with 130 and whole lines; so does the end of what is watched.
check() { python3 "$TRAINWRIGHT_SOURCE_DIR/tests/probe/check_probe.py" "$TRAINWRIGHT_SOURCE_DIR/lib/machine/gpu_probe_watch.schema.json" < "$1"; }
gpu-probe -q --watch --json --samples 3 --interval 0.05 --pid $$ > counted.jsonl
test "$(wc -l < counted.jsonl)" = 3
check counted.jsonl
python3 - $$ <<'PYTHON'
import json, sys
first, *rest = map(json.loads, open("counted.jsonl"))
assert first["host"]["utilization"] is None and first["host"]["processes"][0]["cpus"] is None, first  # no time has passed
for sample in rest:
    process = sample["host"]["processes"][0]
    assert process["pid"] == int(sys.argv[1]) and process["alive"] and process["resident_bytes"] > 1e5, process
    assert process["cpus"] is not None, process
PYTHON

gpu-probe -q --watch --json --interval 0.05 > endless.jsonl &
pid=$!
for _ in $(seq 300); do [[ $(wc -l < endless.jsonl) -lt 2 ]] || break; sleep 0.1; done
kill -INT $pid
status=0
wait $pid || status=$?
test $status = 130
check endless.jsonl

sleep 2 &
gpu-probe -q --watch --json --interval 0.1 --pid $! > followed.jsonl
check followed.jsonl
tail -n 1 followed.jsonl | grep -q '"alive":false'

gpu-probe -q --watch --samples 1 | grep -q '^host '
