#!/usr/bin/env python3
"""Runs the shell blocks of README.md that show the tools at work, in a folder that holds the example data.

usage: readme_test.py SOURCE_DIR BIN_DIR

A block is run when an HTML comment "tested" stands before it. Any other has a comment "tested by NAME", a test of
tests/golden/test_names.txt: what sets up and builds. Steps are kept few and small by the environment, which
is weaker than any flag in the text. A run that embeds takes no --seq: its texts have lengths of their own. The model and
the conversations that stand for the reader's own are made of a run of an earlier block.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SMALL = {"TRAINWRIGHT_LIMIT": "500", "TRAINWRIGHT_STEPS": "2", "TRAINWRIGHT_BATCH": "1", "TRAINWRIGHT_SEQ": "64",
         "TRAINWRIGHT_MAX_TOKENS": "4"}
LINK = re.compile(r"\]\(([^)#:]+)\)")
BLOCK = re.compile(r"(?:<!-- tested( by [^ ]+)? -->\n)?```sh\n(.*?)```", re.DOTALL)
TEMPLATE = ("{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ eos_token }}{% endfor %}"
            "{% if add_generation_prompt %}<assistant>{% endif %}")


def untested(text, names):
    """What is wrong with the blocks that are not run here."""
    for match in BLOCK.finditer(text):
        if not match[0].startswith("<!--"):
            yield f"a block has no comment that says how it is tested:\n{match[2]}"
        elif match[1] and match[1].removeprefix(" by ") not in names:
            yield f"a block is said to be tested{match[1]}, which is no test"


def bring_own_model(folder):
    """path/to/model and talks.jsonl, as a reader has them."""
    model = folder / "path/to/model"
    shutil.copytree((folder / "runs/shakespeare/latest").resolve(), model)
    (model / "chat_template.jinja").write_text(TEMPLATE)
    with open(folder / "talks.jsonl", "w", encoding="utf-8") as talks:
        for i in range(8):
            turns = [{"role": "user", "content": f"{i}?"}, {"role": "assistant", "content": f"{i}!"}]
            talks.write(json.dumps({"messages": turns}) + "\n")


def main():
    source, bin_dir = map(pathlib.Path, sys.argv[1:])
    text = (source / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"<!-- tested -->\n```sh\n(.*?)```", text, re.DOTALL)
    if not blocks:
        sys.exit("README.md has no block to test")
    names = set((source / "tests/golden/test_names.txt").read_text(encoding="utf-8").splitlines())
    if problems := list(untested(text, names)):
        sys.exit("\n".join(problems))
    missing = [target for target in LINK.findall(text) if not (source / target).exists()]
    if missing:
        sys.exit(f"README.md links to what does not exist: {missing}")

    environment = {**os.environ, **SMALL, "PATH": f"{bin_dir.resolve()}:{os.environ['PATH']}"}
    with tempfile.TemporaryDirectory() as folder:
        for name in (source / "examples/data").iterdir():
            os.symlink(name, pathlib.Path(folder) / name.name)
        os.symlink(source.resolve() / "scripts", pathlib.Path(folder) / "scripts")
        for block in blocks:
            print(block, flush=True)
            if "path/to/model" in block:
                bring_own_model(pathlib.Path(folder))
            without = {"TRAINWRIGHT_SEQ"} if "--records contrastive" in block else set()
            small = {name: value for name, value in environment.items() if name not in without}
            subprocess.run(["bash", "-euo", "pipefail", "-c", block], cwd=folder, env=small,
                           stdin=subprocess.DEVNULL, check=True)


if __name__ == "__main__":
    main()
