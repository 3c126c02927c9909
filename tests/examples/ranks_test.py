#!/usr/bin/env python3
"""Runs the examples of several processes, small, with stand-ins for their launchers where there are none.

usage: ranks_test.py torchrun|slurm SOURCE_DIR BIN_DIR

Both must end with a complete run, and with the weights of one process: --exact-world promises that.
"""
import filecmp
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

STEPS = 3
SMALL = {"TRAINWRIGHT_EVAL_TOKENS": "2000", "TRAINWRIGHT_SEQ": "64"}


def complete(work):
    record = json.loads((work / "run/complete.json").read_text(encoding="utf-8"))
    assert record["steps"] == STEPS, record
    return record["weights_sha256"]


def run_torchrun(source, bin_dir, folder, environment):
    # All of it would be evaluated.
    whole = (source / "examples/data/tinyshakespeare.txt").read_text(encoding="utf-8")
    (folder / "data").mkdir()
    (folder / "data/tinyshakespeare.txt").write_text("".join(whole.splitlines(keepends=True)[:2000]), encoding="utf-8")

    def make(work, *arguments):
        subprocess.run(["make", "-f", source / "examples/torchrun/Makefile", f"STEPS={STEPS}", f"WORK={work}",
                        f"DATA={folder}/data", f"BIN={bin_dir}", *arguments], cwd=folder, env=environment, check=True)
        return complete(work)

    two = make(folder / "two")
    evaluation = json.loads((folder / "two/evaluation.json").read_text(encoding="utf-8"))
    assert evaluation["checkpoint"].endswith(f"step-{STEPS:08}"), evaluation["checkpoint"]
    assert make(folder / "one", "RANKS=1", "TORCHRUN=") == two, "two processes gave other weights than one"


def run_slurm(source, bin_dir, folder, environment):
    work = folder / "work"
    environment = {**environment, "WORK": str(work), "STEPS": str(STEPS), "SLICES": "3", "TASKS": "1", "BIN": str(bin_dir),
                   "SBATCH_STAND_IN_FOLDER": str(folder / "jobs")}

    def submit():
        subprocess.run([source / "examples/slurm/submit.sh"], cwd=folder, env=environment, check=True)
        return complete(work)

    two = submit()
    whole = folder / "whole"
    subprocess.run(["bash", "-c", f"'{bin_dir}/pretokenize' --eos '{source}/examples/data/tinyshakespeare.txt' | "
                    f"'{bin_dir}/pack' --chunk 4096 -o '{whole}/'"], check=True)
    names = sorted(path.name for path in whole.iterdir() if path.is_file())
    _, differing, missing = filecmp.cmpfiles(whole, work / "shards", names, shallow=False)
    assert not differing + missing, f"not the shards of the whole: {differing + missing}"
    shutil.rmtree(work / "run")
    environment["NODES"] = "1"
    assert submit() == two, "two processes gave other weights than one"


def main():
    source, bin_dir = (pathlib.Path(path).resolve() for path in sys.argv[2:])
    with tempfile.TemporaryDirectory() as folder:
        stand_ins = source / "tests/examples/launchers"
        environment = {**os.environ, **SMALL, "PATH": f"{bin_dir}:{stand_ins}:{os.environ['PATH']}"}
        {"torchrun": run_torchrun, "slurm": run_slurm}[sys.argv[1]](source, bin_dir, pathlib.Path(folder), environment)


if __name__ == "__main__":
    main()
