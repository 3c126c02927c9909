#!/usr/bin/env python3
"""A Makefile of the examples says what is wrong where its path has a blank, at which make splits names.

usage: examples_in_folders_with_blanks_test.py SOURCE_DIR
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

makefiles = sorted(pathlib.Path(sys.argv[1]).glob("examples/*/Makefile"))
assert len(makefiles) > 5, makefiles
with tempfile.TemporaryDirectory() as scratch:
    for makefile in makefiles:
        folder = pathlib.Path(scratch) / "a b" / makefile.parent.name
        folder.mkdir(parents=True)
        shutil.copy(makefile, folder)
        ran = subprocess.run(["make", "-n"], cwd=folder, text=True, capture_output=True, check=False, timeout=60)
        assert ran.returncode == 2 and "has a blank" in ran.stderr, f"{makefile}: {ran.stdout}{ran.stderr}"
