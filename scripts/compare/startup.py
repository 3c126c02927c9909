#!/usr/bin/env python3
"""How long the tools take to start: `train` to the first step of a tiny model, beside PyTorch, and each tool that needs no torch.

usage: startup.py --bin DIR --work DIR [--rounds N] [--cpus LIST] OUT

A command is measured as a whole, from before its exec to its end. `train` makes preset llama-1m with a vocabulary of 256, takes
one step of 128 tokens and writes a checkpoint; the time to its first step is by the clock, from before the exec to the
step's line in metrics.jsonl. PyTorch's side (startup_peer.py) imports torch alone, makes the same model, takes the same step and
writes its weights; transformers and its Trainer would take longer. The other tools print their version, which is what
starting them costs before they read a byte; beside them a Python that does nothing.
"""
import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

import protocol
from protocol import Comparison, Contestant, Record, Sample

GOAL_FIRST_STEP_S, GOAL_TOOL_S = 0.5, 0.005
TORCH_FREE = ("pretokenize", "pack", "ckpt-compress", "gpu-probe")
STARTS = 20  # of a tool a round: one is too short for the clock of CPU time
PEER = pathlib.Path(__file__).resolve().parent / "startup_peer.py"


def one_step(options, shards, out):
    """The command that trains one step of a new model."""
    shutil.rmtree(out, ignore_errors=True)
    return [options.bin / "train", "-q", "--progress", "never", "--data", shards, "--model", "llama-1m", "--seq", "128", "--batch",
            "1", "--accum", "1", "--steps", "1", "--save-every", "0", "--threads", "1", "--out", out]


def prepare(options):
    """Shards of a text in byte tokens, and the config.json of the model."""
    options.work.mkdir(parents=True, exist_ok=True)
    shards = options.work / "shards"
    if not (shards / "MANIFEST.json").exists():
        text = options.work / "text.txt"
        text.write_text("The quick brown fox jumps over the lazy dog. " * 200)
        stream = subprocess.run([options.bin / "pretokenize", "-q", "--tokenizer", "bytes", text], check=True, capture_output=True)
        subprocess.run([options.bin / "pack", "-q", "--chunk", "1024", "-o", shards], check=True, input=stream.stdout)
    subprocess.run(one_step(options, shards, options.work / "model"), check=True, stdout=subprocess.DEVNULL)
    return shards, next((options.work / "model").glob("checkpoints/*/config.json"))


def train_contestant(options, shards):
    def measure():
        out = options.work / "run"
        command = one_step(options, shards, out)
        began_unix_s = time.time()
        done = protocol.run_command(command)
        steps = [record for record in map(json.loads, open(out / "metrics.jsonl")) if record["type"] == "step"]
        return done.sample(1, first_step_s=steps[0]["time_unix_s"] - began_unix_s)

    return Contestant("train", measure)


def torch_contestant(options, config):
    def measure():
        began_unix_s = time.time()
        done = protocol.run_command([sys.executable, PEER, config, options.work / "peer.pt"])
        return done.sample(1, first_step_s=float(done.stdout) - began_unix_s)

    return Contestant("PyTorch", measure)


def tool_contestant(name, command):
    def measure():
        done = [protocol.run_command(command) for _ in range(STARTS)]
        cpu_s, wall_s = sum(one.cpu_s for one in done), sum(one.wall_s for one in done)
        return Sample(STARTS, cpu_s, wall_s, {"start_s": statistics.median(one.wall_s for one in done), "cpu_share": 1.0})

    return Contestant(name, measure)


def limits_text(record):
    lines = ["", "## By the clock", "", "Medians of the rounds, and the least and the greatest.", "", "| what | seconds | goal |", "|---|---|---|"]

    def line(what, values, goal):
        verdict = "" if goal is None else f"below {goal:g}: {'holds' if max(values) < goal else 'misses'}"
        lines.append(f"| {what} | {statistics.median(values):.4f} ({min(values):.4f} to {max(values):.4f}) | {verdict} |")

    for state in record.states:
        for name in state["peers"]:
            samples = protocol.Results(state).samples(name, "").values()
            for key, goal in (("first_step_s", GOAL_FIRST_STEP_S), ("start_s", GOAL_TOOL_S)):
                values = [sample[key] for sample in samples if key in sample]
                if values:
                    line(f"{name}, exec to {'the first step' if key == 'first_step_s' else 'the end'}", values,
                         goal if name in ("train", *TORCH_FREE) else None)
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    protocol.add_options(parser)
    parser.add_argument("out")
    options = parser.parse_args()
    shards, config = prepare(options)
    record = Record(options.out, "Starting", "scripts/compare/startup.sh",
                    notes=f"torch {protocol.version_here('torch')} of the peer.")
    record.after = limits_text
    record.run(Comparison("train, one step", "runs", [train_contestant(options, shards), torch_contestant(options, config)],
                          **protocol.how(options)))
    python = tool_contestant("a Python that does nothing", ["python3", "-c", "0"])
    for tool in TORCH_FREE:
        record.run(Comparison(f"{tool} --version", "starts", [tool_contestant(tool, [options.bin / tool, "--version"]), python],
                              **protocol.how(options)))


if __name__ == "__main__":
    main()
