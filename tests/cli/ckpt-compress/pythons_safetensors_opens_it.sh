# The reference library lists the container, and reads what was restored or taken out. Needs the package in PYTHON.
python=${PYTHON:-python3}
"$python" -c 'import safetensors, numpy' 2> /dev/null || { echo 'no Python package safetensors; PYTHON may name a Python that has it'; exit 77; }
"$python" - <<'PYTHON'
import json, subprocess
import numpy
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

random = numpy.random.default_rng(1)
tensors = {"zero rank": numpy.array(2.5), "none": numpy.zeros((3, 0), numpy.int16), "ü": numpy.arange(9, dtype=numpy.int64),
           "half": random.normal(0, 0.02, (300, 40)).astype(numpy.float16), "full": random.normal(0, 1, (70, 50, 3)).astype(numpy.float32),
           "truth": numpy.array([True, False]), "bytes": numpy.arange(256, dtype=numpy.uint8)}
save_file(tensors, "model.safetensors", metadata={"format": "np", "note": "\"quoted\" \\ \u2713"})
run = lambda *arguments: subprocess.run(["ckpt-compress", "-q", *arguments], check=True)
run("model.safetensors")
with safe_open("model.twc.safetensors", "np") as container, safe_open("model.safetensors", "np") as original:
    assert sorted(container.keys()) == sorted(original.keys())
    metadata = container.metadata()
    for name in container.keys():
        assert container.get_slice(name).get_dtype() == "U8", name
data = open("model.safetensors", "rb").read()
assert metadata["trainwright.header"].encode() == data[8:8 + int.from_bytes(data[:8], "little")]
assert int(metadata["trainwright.source_size_bytes"]) == len(data)
run("-d", "model.twc.safetensors", "-o", "again.safetensors")
assert open("again.safetensors", "rb").read() == data
run("-d", "--slice", "full[10:12]", "--tensor", "ü", "model.twc.safetensors", "-o", "parts.safetensors")
parts = load_file("parts.safetensors")
assert sorted(parts) == ["full", "ü"]
assert (parts["full"] == tensors["full"][10:12]).all() and (parts["ü"] == tensors["ü"]).all()
PYTHON
