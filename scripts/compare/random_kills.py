#!/usr/bin/env python3
"""Kills `train` with SIGKILL at random moments, resumes it with nothing but --resume --out, and compares the run
directory in the end with that of the uninterrupted run: latest, best, retention, records, reports, copies, weights.

  scripts/compare/random_kills.py [--bin FOLDER] [--kills N] [--seed N]

  --bin FOLDER   the built tools (default: build/release/bin)
  --kills N      go on until so many processes were killed (default: 300)
  --seed N       of the moments (default: 1)

Precisions, adapters, saves in the background and copies take turns. A moment is drawn evenly from the time that a
process takes that is left alone, so that start, steps, saves, evaluations and the bookkeeping behind the last
checkpoint are all met. Ends with status 1 where a run directory differs, and keeps both.
"""
import argparse
import itertools
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 258, "hidden_size": 64,
    "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 32,
    "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": True,
    "hidden_act": "silu",
}
SCENARIOS = list(itertools.product(["no", "bf16", "fp16"], ["full", "lora"], ["off", "on"], ["plain", "compressed"]))


class Runs:
    def __init__(self, tools, folder):
        self.folder = folder
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("TRAINWRIGHT_")}
        self.environment["PATH"] = f"{tools}:{self.environment['PATH']}"
        self.environment["TRAINWRIGHT_THREADS"] = "1"

    def shell(self, command):
        subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=self.folder, env=self.environment, check=True)

    def process(self, arguments, place):
        return subprocess.Popen(["train", "-q", *arguments], cwd=place, env=self.environment,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)

    def state(self, place):
        """What the run directory and its copies hold, and the weights."""
        told = subprocess.run([sys.executable, ROOT / "tests/train/check_run_directory.py", "run", "copies"], cwd=place,
                              capture_output=True, text=True, check=False)
        weights = subprocess.run("sha256sum run/checkpoints/*/*model.safetensors", shell=True, cwd=place,
                                 capture_output=True, text=True, check=True)
        return told.stdout + told.stderr + weights.stdout


def options_of(scenario):
    precision, tuning, background, copies = scenario
    model = ["--model", "../model.json"] if tuning == "full" else ["--init", "../base", "--lora", "4"]
    return [*model, "--data", "../shards", "--eval-data", "../other", "--eval-tokens", "300", "--eval-every", "6",
            "--batch", "4", "--steps", "60", "--save-every", "6", "--keep", "2", "--keep-best", "1", "--async-save", background,
            "--mixed-precision", precision, "--copy-to", "copies", "--out", "run",
            *(["--copy-compress", "--compress-state"] if copies == "compressed" else [])]


def kill_until_done(runs, options, place, time_s, draw):
    """Starts the run and resumes it until a process ends by itself. Returns how many were killed before."""
    kills, arguments = 0, options
    while True:
        process = runs.process(arguments, place)
        try:
            status = process.wait(timeout=draw.uniform(0, time_s))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
            begun = (place / "run" / "run.json").exists()
            arguments = ["--resume", "--out", "run"] if begun else options
            continue
        if status != 0:
            sys.exit(f"random_kills: error: train ended with {status} in {place}")
        return kills


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="random_kills."))
    runs = Runs(arguments.bin.resolve(), folder)
    (folder / "model.json").write_text(json.dumps(MODEL))
    data = ROOT / "examples/data/tinyshakespeare.txt"
    runs.shell(f"head -n 2000 '{data}' | pretokenize -q - | pack -q --chunk 256 -o shards/; "
               f"tail -n 200 '{data}' | pretokenize -q - | pack -q --chunk 256 -o other/; "
               "train -q --model model.json --data shards --steps 4 --batch 4 --out base > /dev/null 2>&1")
    whole, kills, resumed, differing = {}, 0, 0, []
    for number, scenario in enumerate(itertools.cycle(SCENARIOS)):
        if kills >= arguments.kills:
            break
        options = options_of(scenario)
        if scenario not in whole:
            place = folder / ("whole-" + "-".join(scenario))
            place.mkdir()
            start = time.monotonic()
            if runs.process(options, place).wait() != 0:
                sys.exit(f"random_kills: error: the uninterrupted run failed in {place}")
            whole[scenario] = (runs.state(place), time.monotonic() - start)
        expected, time_s = whole[scenario]
        place = folder / f"killed-{number}"
        place.mkdir()
        own = kill_until_done(runs, options, place, time_s, draw)
        kills += own
        resumed += 1 if own > 0 else 0
        if runs.state(place) != expected:
            differing.append(place)
            print("differs:", "-".join(scenario), place, flush=True)
        else:
            subprocess.run(["rm", "-rf", place], check=True)
    print(f"{kills} kills in {resumed} runs of {len(whole)} kinds, seed {arguments.seed}: "
          f"{len(differing)} run directories differ from the uninterrupted run's")
    if not differing:
        subprocess.run(["rm", "-rf", folder], check=True)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
