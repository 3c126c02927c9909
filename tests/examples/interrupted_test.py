#!/usr/bin/env python3
"""Interrupts an example while it trains, as ^C does, and runs it again: the run goes on, and nothing is made of half of it.

usage: interrupted_test.py SOURCE_DIR BIN_DIR
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

STEPS = 10
SMALL = {"TRAINWRIGHT_EVAL_TOKENS": "2000", "TRAINWRIGHT_THREADS": "1", "TRAINWRIGHT_SAVE_EVERY": "1"}


def main():
    source, bin_dir = (pathlib.Path(path).resolve() for path in sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder) / "work"
        make = ["make", "-f", source / "examples/tinyshakespeare/Makefile", f"STEPS={STEPS}", f"WORK={work}",
                f"BIN={bin_dir}"]
        environment = {**os.environ, **SMALL}
        first = subprocess.Popen(make, cwd=folder, env=environment, start_new_session=True)
        end = time.monotonic() + 300
        while not (work / "run/latest").exists() and first.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        os.killpg(first.pid, signal.SIGINT)
        assert first.wait() != 0, "it was over before it was interrupted"
        made = sorted(path.name for path in work.iterdir())
        assert "evaluation.json" not in made and "sample.jsonl" not in made, made

        subprocess.run(make, cwd=folder, env=environment, check=True)
        evaluation = json.loads((work / "evaluation.json").read_text(encoding="utf-8"))
        assert evaluation["checkpoint"].endswith(f"step-{STEPS:08}"), evaluation["checkpoint"]
        assert json.loads((work / "run/complete.json").read_text(encoding="utf-8"))["steps"] == STEPS
        records = [json.loads(line) for line in (work / "run/metrics.jsonl").read_text(encoding="utf-8").splitlines()]
        begins = [record["step"] for record in records if record["type"] == "run_begin"]
        assert len(begins) == 2 and begins[1] > 0, f"the run was not resumed: {begins}"

        again = subprocess.run([*make, "-q", work / "evaluation.json"], cwd=folder, env=environment, check=False)
        assert again.returncode == 0, "what is made is not up to date"


if __name__ == "__main__":
    main()
