#!/usr/bin/env python3
"""Runs the shell blocks of README.md that show the tools at work, in a folder that holds the example data.

usage: readme_test.py SOURCE_DIR BIN_DIR

A block is run when an HTML comment "tested" stands before it. Steps are kept few and small by the environment, which
is weaker than any flag in the text. A run that embeds takes no --seq: its texts have lengths of their own.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SMALL = {"TRAINWRIGHT_LIMIT": "500", "TRAINWRIGHT_STEPS": "2", "TRAINWRIGHT_BATCH": "1", "TRAINWRIGHT_SEQ": "64",
         "TRAINWRIGHT_MAX_TOKENS": "4"}
LINK = re.compile(r"\]\(([^)#:]+)\)")


def main():
    source, bin_dir = map(pathlib.Path, sys.argv[1:])
    text = (source / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"<!-- tested -->\n```sh\n(.*?)```", text, re.DOTALL)
    if not blocks:
        sys.exit("README.md has no block to test")
    missing = [target for target in LINK.findall(text) if not (source / target).exists()]
    if missing:
        sys.exit(f"README.md links to what does not exist: {missing}")

    environment = {**os.environ, **SMALL, "PATH": f"{bin_dir.resolve()}:{os.environ['PATH']}"}
    with tempfile.TemporaryDirectory() as folder:
        for name in (source / "examples/data").iterdir():
            os.symlink(name, pathlib.Path(folder) / name.name)
        for block in blocks:
            print(block, flush=True)
            without = {"TRAINWRIGHT_SEQ"} if "--records contrastive" in block else set()
            small = {name: value for name, value in environment.items() if name not in without}
            subprocess.run(["bash", "-euo", "pipefail", "-c", block], cwd=folder, env=small,
                           stdin=subprocess.DEVNULL, check=True)


if __name__ == "__main__":
    main()
