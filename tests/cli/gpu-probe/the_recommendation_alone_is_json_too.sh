# --recommend --json writes the field "recommendation" of --json, and nothing else, as its schema describes it.
gpu-probe -q --quick --disk-size 0 --device cpu --model llama-125m --recommend --json > advice.json
python3 - "$TRAINWRIGHT_SOURCE_DIR/lib/probe/gpu_probe.schema.json" <<'PYTHON' > schema.json
import json, sys
json.dump(json.load(open(sys.argv[1]))["properties"]["recommendation"], sys.stdout)
PYTHON
python3 "$TRAINWRIGHT_SOURCE_DIR/tests/probe/check_probe.py" schema.json < advice.json
python3 - <<'PYTHON'
import json
advice = json.load(open("advice.json"))
options = {o["option"]: o["value"] for o in advice["options"]}
assert options["device"] == "cpu" and options["model"] == "llama-125m", options
assert "\nmodel: \"llama-125m\"\n" in advice["yaml"], advice["yaml"]
PYTHON
