#!/usr/bin/env python3
"""scripts/test_report.py counts cases, not processes, and hides none of a process that dies.

usage: test_report_test.py SOURCE_DIR
"""
import pathlib
import subprocess
import sys
import tempfile

report = pathlib.Path(sys.argv[1]).resolve() / "scripts/test_report.py"

CASES = "Whole.\n  A\n  B\nCrash.\n  A\n  B\n  C\nDevices/Op.\n  Adds/cpu\n  Adds/cuda_bf16\nMixed.\n  A\n  Alone\nAtEnd.\n  A\n"
CASES += "Reader.\n  Own\n"
LOGS = {
    "Whole": "planned Whole.A\nplanned Whole.B\nbegan Whole.A\npassed Whole.A\nbegan Whole.B\nfailed Whole.B\n",
    "Crash": "planned Crash.A\nplanned Crash.B\nplanned Crash.C\nbegan Crash.A\npassed Crash.A\nbegan Crash.B\n",
    "Devices-Op": "began Devices/Op.Adds/cpu\npassed Devices/Op.Adds/cpu\nskipped Devices/Op.Adds/cuda_bf16\n",
    "Mixed": "passed Mixed.A\n",
    "AtEnd": "passed AtEnd.A\n",
    "Reader.Own": "planned Reader.Own\nbegan Reader.Own\nskipped Reader.Own\n",
}
JUNIT = """<testsuite>
<testcase name="nn/Whole" status="fail"><failure/></testcase>
<testcase name="nn/Crash" status="fail"><failure/></testcase>
<testcase name="nn/Devices/Op" status="run"/>
<testcase name="nn/Mixed" status="run"/>
<testcase name="nn/Mixed.Alone" status="fail"><failure/></testcase>
<testcase name="nn/AtEnd" status="fail"><failure/></testcase>
<testcase name="cli/help" status="run"/>
<testcase name="cli/other" status="notrun"><skipped/><system-out>looked for it
no Python package safetensors
</system-out></testcase>
<testcase name="nn/Reader.Own" status="notrun"><skipped/><system-out>[ RUN      ] Reader.Own
reader_test.cc:7: Skipped
no Python package tensorboard

[  SKIPPED ] Reader.Own (0 ms)
[  SKIPPED ] 1 test, listed below:
</system-out></testcase>
</testsuite>"""
FAILED = """SKIPPED cli/other (no Python package safetensors)
FAILED nn/AtEnd (the process failed outside of its cases)
FAILED nn/Crash.B (did not end)
FAILED nn/Crash.C (was not run)
FAILED nn/Mixed.Alone (was not run)
SKIPPED nn/Reader.Own (no Python package tensorboard)
FAILED nn/Whole.B
6 5 1
"""
NAMES = """failed nn/AtEnd
passed nn/AtEnd.A
passed nn/Crash.A
failed nn/Crash.B
failed nn/Crash.C
"""

with tempfile.TemporaryDirectory() as folder:
    build = pathlib.Path(folder)
    suites = build / "tests/suites/nn"
    suites.mkdir(parents=True)
    (suites / "cases.txt").write_text(CASES)
    for name, log in LOGS.items():
        (suites / f"{name}.log").write_text(log)
    (build / "junit.xml").write_text(JUNIT)
    result = subprocess.run([report, build], text=True, capture_output=True, timeout=60)
    assert result.returncode == 0 and result.stderr == "", result.stderr
    assert result.stdout == FAILED, result.stdout
    names = (build / "test_cases.txt").read_text()
    assert NAMES in names, names
    assert "skipped nn/Devices/Op.Adds/cuda_bf16\n" in names and "skipped cli/other\n" in names, names
