# Libraries in the driver's place: a GPU that is there and cannot be used is named with the reason, as is one that can be
# watched. The status stays 0.
fakes=$(dirname "$(command -v gpu-probe)")/../tests/plugins
machine() {  # machine NVML DRIVER: their fakes under the names that the loader is asked for
  rm -rf lib && mkdir lib
  cp "$fakes/$1.so" lib/libnvidia-ml.so.1
  cp "$fakes/$2.so" lib/libcuda.so.1
}
state() {
  LD_LIBRARY_PATH=$PWD/lib gpu-probe --quick --disk-size 0 --json > report.json
  python3 "$TRAINWRIGHT_SOURCE_DIR/tests/probe/check_probe.py" "$TRAINWRIGHT_SOURCE_DIR/lib/probe/gpu_probe.schema.json" < report.json
  python3 -c 'import json; g = json.load(open("report.json"))["gpu"]; print(g["state"], g["used"])'
}
unset CUDA_VISIBLE_DEVICES
machine nvml driver_12
test "$(state)" = 'driver_too_old None'
machine nvml_exclusive driver
test "$(state)" = 'busy 0'
machine nvml driver
export CUDA_VISIBLE_DEVICES=-1
test "$(state)" = 'hidden None'
unset CUDA_VISIBLE_DEVICES
# Nothing is wrong with the GPU: what is missing is the plugin.
export TRAINWRIGHT_CUDA_PLUGIN=$PWD/nowhere.so
test "$(state)" = 'no_backend 0'
python3 - <<'PYTHON'
import json
report = json.load(open("report.json"))
first, silent = report["gpu"]["devices"]
assert first["sm_count"] == 132 and first["name"] == "NVIDIA H200" and first["throttle_reasons"] == ["power_cap", "hw_thermal"], first
assert silent["memory_total_bytes"] is None
assert "gpu.devices[1].memory_total_bytes is unknown: the system does not report it" in report["warnings"], report["warnings"]
assert any("4242" in note for note in report["recommendation"]["notes"]), report["recommendation"]
PYTHON
status=0
LD_LIBRARY_PATH=$PWD/lib gpu-probe --require-gpu 2> err || status=$?
test $status = 5
grep -q 'no CUDA plugin' err

LD_LIBRARY_PATH=$PWD/lib gpu-probe --watch --json --samples 1 > watch.jsonl
python3 "$TRAINWRIGHT_SOURCE_DIR/tests/probe/check_probe.py" "$TRAINWRIGHT_SOURCE_DIR/lib/machine/gpu_probe_watch.schema.json" < watch.jsonl
python3 -c 'import json; g = json.load(open("watch.jsonl"))["gpus"]; assert g[0]["utilization_percent"] == 97 and len(g[0]["processes"]) == 65'
LD_LIBRARY_PATH=$PWD/lib gpu-probe --watch --samples 1 | grep -q '^GPU 0 NVIDIA H200  *97 %'
