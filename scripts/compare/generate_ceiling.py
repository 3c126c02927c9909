#!/usr/bin/env python3
"""How near generation comes to what this machine could: a step of decoding beside reading what it must read, and multiplying.

usage: generate_ceiling.py --build DIR --work DIR --data DIR [--rounds N] [--tries N] [--cpus LIST] [--models LIST]
                           [--precisions LIST] [--batches LIST] [--quants LIST] OUT

A step takes what 128 more tokens take, a step: the difference of two runs of `generate`, of 16 and of 144 tokens, so that prompts
and the start are not in it, by the protocol of protocol.py. It could take at least the larger of two times: the weights and the
keys and values read once at the rate at which as many threads read memory (gpu-probe), and the operations of the weights' GEMMs at
the best rate that ours, LibTorch's or oneDNN's kernels reach at each shape with operands in no cache (gemm_speed), both measured
once. Weights are random, prompts 32 tokens, greedy.
"""
import argparse
import json
import statistics
import subprocess

import protocol
from machine_rates import layers_of, operations_of, parse_options, record_of, run, share_text
from protocol import Comparison, Contestant, ContestantFailed
from train_side_by_side import LLAMA_CONFIG

GOAL = 0.7
PROMPT_TOKENS, SHORT, LONG = 32, 16, 144
MODELS = {"llama-6x384": LLAMA_CONFIG, "smollm2": "smollm2-135m"}
BYTES = {"fp32": 4, "bf16": 2}
QUANTISED_BYTES = {"int8": 1, "nf4": 4.127 / 8}  # of an element of the layers' matrices, scales included


def checkpoint_of(options, name, cpus):
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
         1, "--steps", 1, "--lr", "1e-9", "--save-every", 0, "--out", out], cpus)
    return out, json.loads(next(out.glob("checkpoints/*/config.json")).read_text())


def decode(options, checkpoint, precision, quant, batch):
    """The Sample of LONG - SHORT steps of decoding."""
    prompts, summary = options.work / "prompts.jsonl", options.work / "generate.json"
    words = "one two three four five six seven eight nine ten".split()
    prompts.write_text("".join(json.dumps({"prompt": " ".join(words[(i + j) % 10] for j in range(PROMPT_TOKENS - 4))}) + "\n"
                               for i in range(batch)))

    def generate(tokens):
        done = protocol.run_command(
            [options.build / "bin/generate", "-q", "--checkpoint", checkpoint, "--input", prompts, "--batch", batch,
             "--max-tokens", tokens, "--temperature", 0, "--mixed-precision", "no" if precision == "fp32" else precision, "--quant",
             quant, "--kernels", "usual", "--threads", options.threads, "--device", "cpu", "--summary", summary])
        told = json.loads(summary.read_text())
        if told["tokens"] != batch * tokens:
            raise ContestantFailed(f"{told['tokens']} tokens instead of {batch * tokens}: a sequence ended")
        return done

    short = generate(SHORT)
    return generate(LONG).sample(batch * (LONG - SHORT), short)


def cases_of(options):
    """{contestant: (precision, quant)}"""
    return {precision + ("" if quant == "none" else f" {quant}"): (precision, quant)
            for precision in options.precisions.split(",") for quant in options.quants.split(",")}


def comparison_of(options, name, checkpoint, batch):
    contestants = [Contestant(f"generate, {case}", lambda how=how: decode(options, checkpoint, *how, batch))
                   for case, how in cases_of(options).items()]
    return Comparison(f"{name}, batch {batch}, threads {options.threads}", "tokens", contestants, threads=options.threads,
                      settings={"tokens": LONG - SHORT}, **protocol.how(options))


def steps_s(results, contestant, batch):
    """Seconds of a step in each round: of the processor with one thread, of the clock with several."""
    clock = "cpu_s" if results.state["settings"]["threads"] == 1 else "wall_s"
    return [batch * sample[clock] / sample["work"] for sample in results.samples(contestant, "").values()]


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


def rows_of(record, reached, models, comparisons, options):
    """What each contestant takes beside what it could; models have their configs, comparisons {(model, batch): name}."""
    rows = []
    for (name, batch), comparison in comparisons.items():
        results = record.results(comparison)
        for case, (precision, quant) in cases_of(options).items():
            reading, multiplying = least_of(reached, models[name], precision, quant, batch)
            steps = steps_s(results, f"generate, {case}", batch)
            rows.append({"model": name, "precision": precision, "quant": quant, "batch": batch,
                         "step_s": statistics.median(steps), "reading_s": reading, "multiplying_s": multiplying, "established": results.established,
                         "shares": [max(reading, multiplying) / step for step in steps]})
    return rows


def text(record):
    """Markdown of the rows."""
    lines = ["", "## Of the ceiling", "",
             "| model | precision | quant | batch | tokens/s | a step, ms | reading, ms | multiplying, ms | of the ceiling |",
             "|---|---|---|---:|---:|---:|---:|---:|---:|"]
    for row in record.extra.get("rows", []):
        lines.append(f"| {row['model']} | {row['precision']} | {row['quant']} | {row['batch']} | "
                     f"{row['batch'] / row['step_s']:,.0f} | {1e3 * row['step_s']:.2f} | {1e3 * row['reading_s']:.2f} | "
                     f"{1e3 * row['multiplying_s']:.2f} | {share_text(row['shares'], GOAL, row['established'])} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", default="1,8,32")
    parser.add_argument("--quants", default="none")
    options, reached = parse_options(parser, MODELS)
    record = record_of(options, "Generation beside what it could take", "generate_ceiling.sh", reached,
                       __doc__.split("\n\n")[2])
    record.after = text
    models, comparisons = {}, {}
    for name in options.models.split(","):
        checkpoint, models[name] = checkpoint_of(options, name, reached.cpus)
        for batch in map(int, options.batches.split(",")):
            comparison = comparison_of(options, name, checkpoint, batch)
            record.run(comparison)
            comparisons[name, batch] = comparison.name
            record.extra["rows"] = rows_of(record, reached, models, comparisons, options)
            record.write()


if __name__ == "__main__":
    main()
