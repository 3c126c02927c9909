#!/usr/bin/env python3
"""run_cli_test.py skips, by status 77 and with the reason, a script that cannot run here, and passes none that says it cannot.

usage: run_cli_test_test.py SOURCE_DIR
"""
import pathlib
import subprocess
import sys
import tempfile

runner = pathlib.Path(sys.argv[1]).resolve() / "tests/cli/run_cli_test.py"

with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    for script, status, said in (("echo 'no Python package x'; exit 77", 77, "no Python package x\n"), ("echo done", 0, ""),
                                 ("exit 3", 1, "exit status 3, not 0")):
        path = folder / f"test_{status}.sh"
        path.write_text(script + "\n")
        result = subprocess.run([sys.executable, runner, path, "--bin", folder], text=True, capture_output=True, timeout=60)
        assert result.returncode == status, (script, result)
        assert said in result.stdout, (script, result.stdout)
