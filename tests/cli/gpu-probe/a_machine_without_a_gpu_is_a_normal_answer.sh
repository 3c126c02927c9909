# Status 0, the CPU's ceilings and advice; --require-gpu is status 5 and says why. No file is left behind.
export LD_LIBRARY_PATH=
if [[ -e /dev/nvidiactl ]]; then export CUDA_VISIBLE_DEVICES=; fi
gpu-probe --quick --disk-size 256KiB --json > report.json
python3 "$TRAINWRIGHT_SOURCE_DIR/tests/probe/check_probe.py" "$TRAINWRIGHT_SOURCE_DIR/lib/probe/gpu_probe.schema.json" < report.json
python3 - <<'PYTHON'
import json
report = json.load(open("report.json"))
assert report["gpu"]["state"] in ("no_driver", "hidden", "no_gpu"), report["gpu"]
assert report["gpu"]["problem"] and report["gpu"]["hint"], report["gpu"]
assert report["settings"]["device"] == "cpu"
measured = {(m["what"], m["dtype"]) for m in report["measured"]}
assert measured == {("gemm", "fp32"), ("gemm", "bf16"), ("gemm", "fp16"), ("memory_copy", None), ("memory_read", None),
                    ("memory_triad", None), ("disk_write", None)}, measured
options = {o["option"]: o["value"] for o in report["recommendation"]["options"]}
assert options["device"] == "cpu" and options["pin"] == "off", options
PYTHON
test "$(ls -A)" = report.json

status=0
gpu-probe --require-gpu > out 2> err || status=$?
test $status = 5
test ! -s out
grep -q 'gpu-probe: error: --require-gpu: ' err
grep -q 'gpu-probe: hint: ' err
