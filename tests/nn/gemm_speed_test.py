"""gemm_speed tells a rate of every pass of a layer by every library, and refuses what is no layer.

usage: gemm_speed_test.py PROGRAM
"""

import json
import subprocess
import sys
import tempfile

program = sys.argv[1]
for precision in ("fp32", "bf16"):
    with tempfile.NamedTemporaryFile() as summary:
        subprocess.run([program, "--precision", precision, "--layer", "32x64x48", "--layer", "20x48x64", "--rounds", "1", "--cold-bytes",
                        "100000", "--summary", summary.name], stdout=subprocess.PIPE, check=True)
        with open(summary.name, encoding="utf-8") as file:
            told = json.load(file)
    rows = told["gemms"]
    for layer in ("32x64x48", "20x48x64"):
        for one_pass in ("forward", "input gradient", "weight gradient"):
            kernels = {row["kernels"] for row in rows if row["layer"] == layer and row["pass"] == one_pass}
            assert {"ours", "torch"} <= kernels <= {"ours", "torch", "onednn"}, (precision, layer, one_pass, kernels)
    assert all(1e5 < row["flops_per_s"] < 1e14 for row in rows), rows

for layer in ("32x64", "0x1x1", "axbxc"):
    assert subprocess.run([program, "--layer", layer], stderr=subprocess.PIPE, check=False).returncode == 2, layer
