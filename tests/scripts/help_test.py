#!/usr/bin/env python3
"""Every script that knows --help prints the comment at its top, from whatever folder it is called.

usage: help_test.py SOURCE_DIR
"""
import pathlib
import subprocess
import sys

source = pathlib.Path(sys.argv[1]).resolve()
scripts = [path for path in sorted(source.glob("scripts/**/*.sh"))
           if path.name != "common.sh" and "print_usage" in path.read_text()]
assert len(scripts) > 5, scripts
for script in scripts:
    first_comment = script.read_text().splitlines()[1]
    result = subprocess.run([script, "--help"], cwd="/", text=True, capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
    assert result.returncode == 0 and result.stderr == "", f"{script}: {result.stderr}"
    assert "# " + result.stdout.splitlines()[0] == first_comment, f"{script}: {result.stdout[:200]}"
    assert f"usage: {script.relative_to(source)}" in result.stdout, f"{script}: {result.stdout}"
