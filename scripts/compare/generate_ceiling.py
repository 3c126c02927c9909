#!/usr/bin/env python3
"""How near generation comes to what this machine could: a step of decoding beside reading what it must read, and multiplying.

usage: generate_ceiling.py --build DIR --work DIR --data DIR [--rounds N] [--cpus LIST] [--models LIST] [--precisions LIST]
                           [--batches LIST] [--quants LIST] OUT

A step takes what 128 more tokens take, a step: the difference of two runs of `generate`, of 16 and of 144 tokens, so that prompts and
the start are not in it. It could take at least the larger of two times: the weights and the keys and values read once at the rate at
which as many threads read memory (gpu-probe), and the operations of the weights' GEMMs at the best rate that ours, LibTorch's or
oneDNN's kernels reach at each shape with operands in no cache (gemm_speed). Weights are random, prompts 32 tokens, greedy.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

from machine_rates import conditions, layers_of, operations_of, parse_options, run
from train_side_by_side import LLAMA_CONFIG

GOAL = 0.7
PROMPT_TOKENS, SHORT, LONG = 32, 16, 144
MODELS = {"llama-6x384": LLAMA_CONFIG, "smollm2": "smollm2-135m"}
BYTES = {"fp32": 4, "bf16": 2}
QUANTISED_BYTES = {"int8": 1, "nf4": 4.127 / 8}  # of an element of the layers' matrices, scales included


def checkpoint_of(options, name):
    """A checkpoint of random weights, and its config."""
    model, out = MODELS[name], options.work / name
    if isinstance(model, dict):
        path = options.work / f"{name}.json"
        path.write_text(json.dumps(model))
        model = path
    shards = options.work / "shards"
    tool = options.build / "bin"
    if not shards.exists():
        text = options.work / "text"
        text.write_text("The quick brown fox jumps over the lazy dog. " * 300)
        stream = subprocess.run([tool / "pretokenize", "-q", "--tokenizer", options.data / "tokenizers/mistral-v1.model", text],
                                stdout=subprocess.PIPE, check=True).stdout
        subprocess.run([tool / "pack", "-q", "--chunk", "64", "--mode", "concat", "-o", shards], input=stream, check=True)
    run([tool / "train", "-q", "--progress", "never", "--device", "cpu", "--data", shards, "--model", model, "--seq", 64, "--batch", 1, "--accum",
         1, "--steps", 1, "--lr", "1e-9", "--save-every", 0, "--out", out], options.cpus)
    return out, json.loads(next(out.glob("checkpoints/*/config.json")).read_text())


def step_of(options, checkpoint, precision, quant, batch):
    """Seconds of a step of decoding."""
    prompts = options.work / "prompts.jsonl"
    words = "one two three four five six seven eight nine ten".split()
    prompts.write_text("".join(json.dumps({"prompt": " ".join(words[(i + j) % 10] for j in range(PROMPT_TOKENS - 4))}) + "\n"
                               for i in range(batch)))
    times = {SHORT: [], LONG: []}
    for _ in range(options.rounds):
        for tokens in times:
            summary = options.work / "generate.json"
            run([options.build / "bin/generate", "-q", "--checkpoint", checkpoint, "--input", prompts, "--batch", batch, "--max-tokens", tokens,
                 "--temperature", 0, "--mixed-precision", "no" if precision == "fp32" else precision, "--quant", quant, "--kernels", "usual",
                 "--threads", len(options.cpus), "--device", "cpu", "--summary", summary], options.cpus)
            told = json.loads(summary.read_text())
            if told["tokens"] != batch * tokens:
                sys.exit(f"{told['tokens']} tokens instead of {batch * tokens}: a sequence ended")
            times[tokens].append(told["generation_time_s"])
    return (statistics.median(times[LONG]) - statistics.median(times[SHORT])) / (LONG - SHORT)


def least_of(reached, config, precision, quant, batch):
    """(seconds of reading, seconds of multiplying) of a step."""
    layers = layers_of(config, batch, batch)
    head = layers[-1][0]
    weights = 0
    for layer, count in layers:
        _, inner, outer = map(int, layer.split("x"))
        element = BYTES[precision] if layer == head else QUANTISED_BYTES.get(quant, BYTES[precision])
        weights += count * inner * outer * element
    heads = config["num_attention_heads"]
    head_dim = config.get("head_dim") or config["hidden_size"] // heads
    positions = PROMPT_TOKENS + (SHORT + LONG) / 2
    cache = 2 * config["num_hidden_layers"] * config.get("num_key_value_heads", heads) * head_dim * positions * batch * BYTES[precision]
    multiplying = 0
    for layer, count in layers:
        rates = reached.gemm(layer, precision)["forward"]
        multiplying += count * operations_of(layer) / max(rates.values())
    return (weights + cache) / reached.read_bytes_per_s, multiplying


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", default="1,8,32")
    parser.add_argument("--quants", default="none")
    options, told, reached = parse_options(parser, MODELS)
    rows = []
    for name in options.models.split(","):
        checkpoint, config = checkpoint_of(options, name)
        for precision in options.precisions.split(","):
            for quant in options.quants.split(","):
                for batch in map(int, options.batches.split(",")):
                    print(f"generate_ceiling: {name}, {precision}, {quant}, batch {batch}", file=sys.stderr)
                    reading, multiplying = least_of(reached, config, precision, quant, batch)
                    step = step_of(options, checkpoint, precision, quant, batch)
                    rows.append({"model": name, "precision": precision, "quant": quant, "batch": batch, "step_s": step,
                                 "reading_s": reading, "multiplying_s": multiplying, "share": max(reading, multiplying) / step})
    pathlib.Path(f"{options.out}.json").write_text(json.dumps(
        {"machine": told, "threads": len(options.cpus), "memory_read_bytes_per_s": reached.read_bytes_per_s, "rows": rows}, indent=1) + "\n")
    lines = ["# Generation beside what it could take", "",
             f"{conditions('generate_ceiling.sh', told, reached)}; {options.rounds} runs. " + " ".join(__doc__.split("\n\n")[2].split()), "",
             f"| model | precision | quant | batch | tokens/s | a step, ms | reading, ms | multiplying, ms | of the ceiling (goal {GOAL}) |",
             "|---|---|---|---:|---:|---:|---:|---:|---:|"]
    for row in rows:
        lines.append(f"| {row['model']} | {row['precision']} | {row['quant']} | {row['batch']} | {row['batch'] / row['step_s']:,.0f} | "
                     f"{1e3 * row['step_s']:.2f} | {1e3 * row['reading_s']:.2f} | {1e3 * row['multiplying_s']:.2f} | {row['share']:.2f}"
                     f"{'' if row['share'] >= GOAL else ', misses'} |")
    pathlib.Path(f"{options.out}.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
