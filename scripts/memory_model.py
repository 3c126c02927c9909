#!/usr/bin/env python3
"""Compares what `train --dry-run` says of a run's memory with the peak of the run itself.

For tuning x optimizer state x offload x recomputation: both above the idle engine, which is the peak of a process
that reads the settings and the data and makes no model (--explain, once a tuning). Every model takes more than 500 MB. Ends with
status 1 where the two are more than 10 % apart, or where the parts that are told by shapes alone are.

  scripts/memory_model.py [--bin FOLDER] [--pairwise] [--json FILE] [--keep FOLDER]

  --bin FOLDER    the built tools (default: build/release/bin)
  --pairwise      as few combinations as hold every pair of two levers' values, instead of all
  --only TEXT     combinations whose name holds the text
  --json FILE     writes the numbers there, too
  --keep FOLDER   works there and leaves everything; else in a temporary folder
"""
import argparse
import array
import itertools
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
TOLERANCE = 0.1
LEAST_BYTES = 500_000_000
LEVERS = {
    "tuning": ["full", "lora", "nf4"],
    "states": ["fp32", "bf16"],
    "offload": ["no", "activations", "gradients", "all"],
    "recomputation": ["no", "selective", "full"],
}
TUNING_FLAGS = {
    "full": ["--model", "full/config.json"],
    "lora": ["--init", "lora", "--lora", "8"],
    "nf4": ["--init", "nf4", "--lora", "8", "--quant", "nf4"],
}
# Wide and shallow: many weights for few operations. NF4 leaves the embeddings as they are, so they are most of it.
MODELS = {
    "full": {"vocab_size": 258, "hidden_size": 1280, "intermediate_size": 3584, "num_hidden_layers": 3},
    "lora": {"vocab_size": 258, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 2},
    "nf4": {"vocab_size": 28672, "hidden_size": 2048, "intermediate_size": 4096, "num_hidden_layers": 2},
}


def config_of(name):
    model = MODELS[name]
    return {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", **model,
        "num_attention_heads": model["hidden_size"] // 128, "num_key_value_heads": model["hidden_size"] // 128,
        "head_dim": 128, "max_position_embeddings": 1024, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
        "tie_word_embeddings": False, "hidden_act": "silu",
    }


def shapes_of(config):
    hidden, inner, vocabulary = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    shapes = {"model.embed_tokens.weight": [vocabulary, hidden], "model.norm.weight": [hidden],
              "lm_head.weight": [vocabulary, hidden]}
    for layer in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{layer}."
        for name in "qkvo":
            shapes[f"{prefix}self_attn.{name}_proj.weight"] = [hidden, hidden]
        for name in ("gate", "up"):
            shapes[f"{prefix}mlp.{name}_proj.weight"] = [inner, hidden]
        shapes[f"{prefix}mlp.down_proj.weight"] = [hidden, inner]
        for name in ("input", "post_attention"):
            shapes[f"{prefix}{name}_layernorm.weight"] = [hidden]
    return shapes


def write_base(folder, config):
    """A model of small weights, which repeat: memory does not depend on them."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    entries, offset = {}, 0
    for name, shape in sorted(shapes_of(config).items()):
        size = 4 * shape[0] * (shape[1] if len(shape) == 2 else 1)
        entries[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    draw = random.Random(0)
    block = array.array("f", (draw.uniform(-0.03, 0.03) for _ in range(1 << 16))).tobytes()
    header = json.dumps(entries).encode()
    header += b" " * (-len(header) % 8)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        for begin in range(0, offset, len(block)):
            file.write(block[:min(len(block), offset - begin)])


def pairwise(levers):
    """Greedy: the first of the combinations that hold the most pairs which no chosen one holds."""
    names = list(levers)
    pairs_of = lambda values: set(itertools.combinations(zip(names, values), 2))
    combinations = list(itertools.product(*levers.values()))
    missing = set().union(*map(pairs_of, combinations))
    chosen = []
    while missing:
        best = max(combinations, key=lambda values: len(pairs_of(values) & missing))
        missing -= pairs_of(best)
        chosen.append(best)
    return chosen


class Runner:
    def __init__(self, tools, folder):
        self.tools, self.folder = tools, folder
        self.idle_bytes = {}  # by tuning
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("TRAINWRIGHT_")}
        self.environment["PATH"] = f"{tools}:{self.environment['PATH']}"

    def shell(self, command):
        subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=self.folder, env=self.environment, check=True)

    def train(self, arguments, allowed=(0,)):
        """The summary of a process."""
        command = [str(self.tools / "train"), "-q", "--summary", "summary.json", *arguments]
        result = subprocess.run(command, cwd=self.folder, env=self.environment, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True)
        if result.returncode not in allowed:
            sys.exit(f"memory_model: error: {' '.join(command)} ended with {result.returncode}\n{result.stderr}")
        return json.loads((self.folder / "summary.json").read_text())


def compare(runner, values):
    tuning, states, offload, recomputation = values
    settings = [*TUNING_FLAGS[tuning], "--optimizer-states", states, "--offload", offload, "--offload-dir", ".",
                "--checkpoint-activations", recomputation, "--steps", "2", "--batch", "1", "--seq", "64",
                "--async-save", "off", "--save-every", "0"]
    if tuning not in runner.idle_bytes:  # no model is made
        runner.idle_bytes[tuning] = runner.train([*settings, "--explain"])["max_memory_bytes"]
    idle = runner.idle_bytes[tuning]
    plan = runner.train([*settings, "--dry-run"])
    told = plan["memory_bytes"]
    run = runner.train([*settings, "--out", "run"])
    subprocess.run(["rm", "-r", str(runner.folder / "run")], check=True)
    measured = run["max_memory_bytes"] - idle
    return {"name": "-".join(values), "measured_bytes": measured, "told_bytes": told["total"] - idle,
            "shapes_bytes": plan["shapes_bytes"] - idle, "idle_bytes": idle, "parts": told, "held": run.get("memory_bytes")}


def row_of(result):
    """The row, and whether it is as promised."""
    measured = result["measured_bytes"]
    told, shapes = result["told_bytes"] / measured - 1, result["shapes_bytes"] / measured - 1
    good = abs(told) <= TOLERANCE and abs(shapes) <= TOLERANCE and measured >= LEAST_BYTES
    note = "" if good else "  too small" if measured < LEAST_BYTES else "  TOO FAR"
    return (f"{result['name']:32} {measured / 1e6:9.1f} {result['told_bytes'] / 1e6:9.1f} {told:+8.1%} "
            f"{result['shapes_bytes'] / 1e6:9.1f} {shapes:+8.1%}{note}"), good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--pairwise", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path)
    arguments = parser.parse_args()
    combinations = pairwise(LEVERS) if arguments.pairwise else list(itertools.product(*LEVERS.values()))
    combinations = [values for values in combinations if arguments.only in "-".join(values)]
    with tempfile.TemporaryDirectory(prefix="memory_model.") as temporary:
        folder = (arguments.keep or pathlib.Path(temporary)).resolve()
        folder.mkdir(exist_ok=True)
        runner = Runner(arguments.bin.resolve(), folder)
        runner.shell(f"head -n 600 '{ROOT}/examples/data/tinyshakespeare.txt' | pretokenize -q - | "
                     "pack -q --chunk 256 -o shards/")
        runner.environment["DATA"] = "shards"
        (folder / "full").mkdir()
        (folder / "full/config.json").write_text(json.dumps(config_of("full")))
        for name in ("lora", "nf4"):
            if any(values[0] == name for values in combinations):
                write_base(folder / name, config_of(name))
        print(f"{'MB above the idle engine':32} {'measured':>9} {'dry run':>9} {'':8} {'shapes':>9}", flush=True)
        results, bad = [], 0
        for values in combinations:
            results.append(compare(runner, values))
            row, good = row_of(results[-1])
            bad += not good
            print(row, flush=True)
        if arguments.json:
            arguments.json.write_text(json.dumps(results, indent=1) + "\n")
    print(f"{len(results) - bad} of {len(results)} within {TOLERANCE:.0%}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
