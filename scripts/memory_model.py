#!/usr/bin/env python3
"""Compares what `train --dry-run` says of a run's memory with the peak of the run itself.

For tuning x optimizer state x offload x recomputation, and once each for GPT-2 and bf16: both above the idle engine,
which is the peak of a process that reads the settings and the data and makes no model (--explain, once a tuning). Ends
with status 1 where the two are more than 10 % apart, where the parts that are told by shapes alone are, or where a row
could not have failed: a run that without levers takes less than 500 MB; a lever that is on and weighs so little that a
model without it would pass, too; a peak that loading weights alone comes near to (measured once a tuning, of a run whose
data ends it before its first step).

Beside each row stands the share of what levers change: of the optimizer's states, the gradients, the activations and,
under NF4, the weights, in a run without the levers; and what those that are on take away.

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
import math
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
TOLERANCE = 0.1
LEAST_BYTES = 500_000_000
LEAST_OVER_LOADING = 1.2
LEVERS = {
    "tuning": ["full", "lora", "nf4"],
    "states": ["fp32", "bf16"],
    "offload": ["no", "activations", "gradients", "all"],
    "recomputation": ["no", "selective", "full"],
}
BESIDE = [("gpt2", "fp32", "no", "no"), ("bf16", "fp32", "no", "no")]
TUNING_FLAGS = {
    "full": ["--model", "full/config.json"],
    "gpt2": ["--model", "gpt2/config.json"],
    "bf16": ["--model", "full/config.json", "--mixed-precision", "bf16"],
    "lora": ["--init", "lora", "--lora", "128"],
    "nf4": ["--init", "nf4", "--lora", "128", "--quant", "nf4"],
}
# Narrow and deep: many activations for few operations. Adapters about as large as the layers, so that their states weigh
# something, and a vocabulary that NF4 leaves as it is.
HIDDEN, INNER = 256, 704
MODELS = {
    "full": {"vocab_size": 4096, "num_hidden_layers": 36},
    "gpt2": {"vocab_size": 4096, "num_hidden_layers": 36},
    "lora": {"vocab_size": 4096, "num_hidden_layers": 32},
    "nf4": {"vocab_size": 32768, "num_hidden_layers": 32},
}
LOADED = ("lora", "nf4")
SAMPLES, SAMPLE_TOKENS = 2, 192
STEPS = 3  # the heap grows in the second, too


def config_of(name):
    if name == "gpt2":
        model = MODELS[name]
        return {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": model["vocab_size"],
                "n_embd": HIDDEN, "n_layer": model["num_hidden_layers"], "n_head": HIDDEN // 64, "n_positions": 1024}
    return {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", **MODELS[name], "hidden_size": HIDDEN,
        "intermediate_size": INNER, "num_attention_heads": HIDDEN // 64, "num_key_value_heads": HIDDEN // 64,
        "head_dim": 64, "max_position_embeddings": 1024, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
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
        self.cpu_time_s = 0
        self.idle_bytes, self.loading_bytes, self.activation_bytes = {}, {}, {}  # by tuning
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("TRAINWRIGHT_")}
        self.environment.update(PATH=f"{tools}:{self.environment['PATH']}", GOMP_SPINCOUNT="1000")

    def shell(self, command):
        subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=self.folder, env=self.environment, check=True)

    def prepare(self, tunings):
        """The data, the same with frames that cannot be read, and the models."""
        self.shell(f"head -n 600 '{ROOT}/examples/data/tinyshakespeare.txt' | pretokenize -q - | "
                   f"pack -q --chunk {SAMPLE_TOKENS} -o shards/; cp -r shards damaged")
        for shard in (self.folder / "damaged").glob("*.tws"):
            content = bytearray(shard.read_bytes())
            for place in range(len(content) // 4, 3 * len(content) // 4):
                content[place] ^= 0x5A
            shard.write_bytes(content)
        for name in MODELS:
            if name in LOADED:
                if name in tunings:
                    write_base(self.folder / name, config_of(name))
                continue
            (self.folder / name).mkdir()
            (self.folder / name / "config.json").write_text(json.dumps(config_of(name)))

    def train(self, values, arguments, data="shards", status=0):
        """The summary of a process of a combination's settings."""
        tuning, states, offload, recomputation = values
        command = [str(self.tools / "train"), "-q", "--data", data, "--summary", "summary.json", *TUNING_FLAGS[tuning],
                   "--optimizer-states", states, "--offload", offload, "--offload-dir", ".",
                   "--checkpoint-activations", recomputation, "--steps", str(STEPS), "--batch", str(SAMPLES),
                   "--seq", str(SAMPLE_TOKENS), "--async-save", "off", "--save-every", "0", *arguments]
        result = subprocess.run(command, cwd=self.folder, env=self.environment, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True)
        if result.returncode != status:
            sys.exit(f"memory_model: error: {' '.join(command)} ended with {result.returncode}, not {status}\n"
                     f"{result.stderr}")
        summary = json.loads((self.folder / "summary.json").read_text())
        self.cpu_time_s += summary["cpu_time_s"]
        return summary

    def measure(self, tuning):
        """What is the same for all rows of a tuning."""
        if tuning in self.idle_bytes:
            return
        lightest = (tuning, "bf16", "all", "full")
        self.idle_bytes[tuning] = self.train(lightest, ["--explain"])["max_memory_bytes"]  # no model is made
        self.loading_bytes[tuning] = 0
        if tuning in LOADED:
            loading = self.train(lightest, ["--out", "loading"], data="damaged", status=3)
            self.loading_bytes[tuning] = loading["max_memory_bytes"] - self.idle_bytes[tuning]
            shutil.rmtree(self.folder / "loading")

    def activations_of(self, values, plan):
        """Those of the tuning without levers."""
        tuning, _, offload, recomputation = values
        if offload in ("no", "gradients") and recomputation == "no":
            self.activation_bytes.setdefault(tuning, plan["memory_bytes"]["activations"])
        elif tuning not in self.activation_bytes:
            plain = self.train((tuning, "bf16", "no", "no"), ["--dry-run"])
            self.activation_bytes[tuning] = plain["memory_bytes"]["activations"]
        return self.activation_bytes[tuning]


def levers_of(runner, values, plan):
    """Of each lever: whether it is on, and the bytes of what it changes, without and with it."""
    tuning, states, offload, recomputation = values
    told, trained = plan["memory_bytes"], 4 * plan["trainable_parameters"]
    levers = {
        "states": (states == "bf16", 2 * trained, told["optimizer"]),
        # Those of adapters are one segment, which is always worked on.
        "gradients": (offload in ("gradients", "all") and tuning not in LOADED, trained, told["gradients"]),
        "activations": (offload in ("activations", "all") or recomputation != "no",
                        runner.activations_of(values, plan), told["activations"]),
    }
    if tuning == "nf4":
        base = 4 * sum(math.prod(shape) for shape in shapes_of(config_of(tuning)).values())
        levers["weights"] = (True, base, told["frozen"])
    return levers


def compare(runner, values):
    runner.measure(values[0])
    idle = runner.idle_bytes[values[0]]
    plan = runner.train(values, ["--dry-run"])
    run = runner.train(values, ["--out", "run"])
    shutil.rmtree(runner.folder / "run")
    return {"name": "-".join(values), "measured_bytes": run["max_memory_bytes"] - idle,
            "told_bytes": plan["memory_bytes"]["total"] - idle, "shapes_bytes": plan["shapes_bytes"] - idle,
            "idle_bytes": idle, "loading_bytes": runner.loading_bytes[values[0]],
            "levers": levers_of(runner, values, plan), "parts": plan["memory_bytes"],
            "held": run.get("memory_bytes")}


def problems_of(result):
    """Why a row is not as promised, or could not have failed."""
    measured, levers = result["measured_bytes"], result["levers"]
    plain = result["told_bytes"] + sum(without - held for on, without, held in levers.values() if on)
    problems = []
    if any(abs(result[told] / measured - 1) > TOLERANCE for told in ("told_bytes", "shapes_bytes")):
        problems.append("TOO FAR")
    if plain < LEAST_BYTES:
        problems.append("too small")
    if measured < LEAST_OVER_LOADING * result["loading_bytes"]:
        problems.append("only loading was measured")
    # Told without activations, or as if the lever were off, such a row would be within TOLERANCE.
    if levers["activations"][1] < TOLERANCE * plain:
        problems.append("too few activations")
    problems += [f"{name} weigh too little" for name, (on, without, held) in levers.items()
                 if on and without - held < TOLERANCE * result["told_bytes"]]
    shares = "".join(f" {name} {without / plain:.0%}" + (f" - {(without - held) / plain:.0%}" if on else "")
                     for name, (on, without, held) in levers.items())
    return problems, shares


def row_of(result):
    """The row, and whether it is as promised."""
    measured = result["measured_bytes"]
    problems, shares = problems_of(result)
    told, shapes = result["told_bytes"] / measured - 1, result["shapes_bytes"] / measured - 1
    note = "  " + ", ".join(problems) if problems else ""
    return (f"{result['name']:32} {measured / 1e6:8.1f} {result['told_bytes'] / 1e6:8.1f} {told:+6.1%} "
            f"{result['shapes_bytes'] / 1e6:8.1f} {shapes:+6.1%} {result['loading_bytes'] / 1e6:8.1f} {shares}"
            f"{note}"), not problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--pairwise", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path)
    arguments = parser.parse_args()
    combinations = pairwise(LEVERS) if arguments.pairwise else list(itertools.product(*LEVERS.values()))
    combinations = [values for values in combinations + BESIDE if arguments.only in "-".join(values)]
    with tempfile.TemporaryDirectory(prefix="memory_model.") as temporary:
        folder = (arguments.keep or pathlib.Path(temporary)).resolve()
        folder.mkdir(exist_ok=True)
        runner = Runner(arguments.bin.resolve(), folder)
        runner.prepare({values[0] for values in combinations})
        print(f"{'MB above the idle engine':32} {'measured':>8} {'dry run':>8} {'':6} {'shapes':>8} {'':6} {'loading':>8}",
              flush=True)
        results, bad = [], 0
        for values in combinations:
            results.append(compare(runner, values))
            row, good = row_of(results[-1])
            bad += not good
            print(row, flush=True)
        if arguments.json:
            arguments.json.write_text(json.dumps(results, indent=1) + "\n")
    print(f"{len(results) - bad} of {len(results)} within {TOLERANCE:.0%}; {runner.cpu_time_s:.0f} s of CPU time")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
