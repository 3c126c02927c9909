"""kernel_speed measures every operator that ops.cc defines, and beside it torch's operator of the same maths.

usage: kernel_speed_test.py PROGRAM OPS_CC
"""

import json
import re
import subprocess
import sys
import tempfile

program, ops_cc = sys.argv[1:]
with tempfile.NamedTemporaryFile() as summary:
    run = subprocess.run(
        [program, "--device", "cpu", "--rows", "48", "--width", "128", "--vocabulary", "300", "--rounds", "1",
         "--precision", "fp32", "--summary", summary.name], stdout=subprocess.PIPE, text=True, check=True)
    with open(summary.name, encoding="utf-8") as file:
        told = json.load(file)
operators = {row["operator"]: row for row in told["operators"]}
assert told["threads"] >= 1, told["threads"]

with open(ops_cc, encoding="utf-8") as file:
    defined = set(re.findall(r'library\.def\(\s*"(\w+)\(', file.read()))
assert len(defined) > 10 and set(operators) == defined, defined ^ set(operators)

for name, row in operators.items():
    assert row["bytes"] > 0 and row["time_s"] > 0 and row["cpu_time_s"] > 0, row
    assert abs(row["bytes_per_s"] * row["time_s"] - row["bytes"]) < 1e-6 * row["bytes"], row
    if name != "finish_step":  # torch has none
        assert row["torch_time_s"] > 0 and row["difference"] < 1e-5, row

lines = run.stdout.splitlines()
assert lines[0].split()[0] == "operator" and {line.split()[0] for line in lines[1:]} >= defined, run.stdout
