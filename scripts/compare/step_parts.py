#!/usr/bin/env python3
"""Where a step of training goes, part by part, beside what each part could take at least on this machine.

usage: step_parts.py --build DIR --work DIR --data DIR [--rounds N] [--tries N] [--cpus LIST] [--models LIST] [--precisions LIST]
                     [--steps N] OUT

A part's time is that of `train --profile`, by the protocol of protocol.py, and the median of all rounds. What it could take at
least is, of GEMMs, their operations at the best rate that ours, LibTorch's or oneDNN's kernels reach at each shape with operands
in no cache (gemm_speed); of attention, its operations at the best of these rates; of all else the bytes that must be read and
written, at the rate at which the machine reads memory (gpu-probe). Bytes are counted once for what is read and once for what is
written, whatever a cache may save, so that a part may be faster than that. These rates are measured once.
"""
import argparse
import json
import shutil
import statistics
import subprocess

import protocol
from machine_rates import layers_of, operations_of, parse_options, record_of, share_text
from protocol import Comparison, Contestant, Sample
from train_runs import figures_of, records_of
from train_side_by_side import LLAMA_CONFIG

GOAL_GEMM, GOAL_STEP = 0.9, 0.85
# What the tables show, in this order; the rest is "other".
PARTS = ("gemm", "attention", "norm", "activation", "position", "embedding", "head", "optimizer", "clip")
PACKED_TOKENS = 110  # of a document of 400 characters, about
# Of a step: the model, tokens of a sample, samples, and whether documents are packed.
MODELS = {"llama-6x384": (LLAMA_CONFIG, 512, 4, False), "llama-1m": ("llama-1m", 256, 8, False),
          "smollm2-512": ("smollm2-135m", 512, 2, False), "smollm2-2048": ("smollm2-135m", 2048, 1, False),
          "packed": (LLAMA_CONFIG, 512, 4, True)}


def bytes_of(config, tokens, stored, parameters):
    """What the parts other than GEMMs and attention read and write at least, of values of `stored` bytes."""
    width, layers, inner = config["hidden_size"], config["num_hidden_layers"], config["intermediate_size"]
    heads = config["num_attention_heads"]
    kv_heads = config.get("num_key_value_heads", heads)
    head_dim = config.get("head_dim") or width // heads
    norms = 2 * layers + 1
    copies = 0 if stored == 4 else 2  # of the weights in reduced precision
    return {
        # Residual, update, sum and what is normalised; backward its gradient, the sum, and the stream's gradient twice.
        "norm": norms * tokens * width * ((8 + 2 * stored) + (12 + stored)),
        "activation": layers * tokens * inner * (3 + 5) * stored,
        "position": layers * tokens * (heads + kv_heads) * head_dim * 4 * stored,
        "embedding": tokens * width * (8 + 12),
        "head": tokens * config["vocab_size"] * 2 * stored,
        # Weight, gradient and two moments read, all but the gradient written, and the gradient set to 0.
        "optimizer": parameters * (16 + 12 + 4 + copies),
        "clip": parameters * 4,
    }


def attention_operations(config, spans):
    """Seven GEMMs of the scores' size, of which a causal mask needs half."""
    heads, width = config["num_attention_heads"], config["hidden_size"]
    head_dim = config.get("head_dim") or width // heads
    return config["num_hidden_layers"] * heads * sum(7 * span * span * head_dim for span in spans)


def shards_of(options, packed, sequence):
    """A set of shards: of one document, or of documents of a hundred tokens or so, packed."""
    folder = options.work / ("packed" if packed else f"one-{sequence}")
    if folder.exists():
        return folder
    text = subprocess.run(["zstd", "-dcq", options.data / "bench/english-32MB.jsonl.zst"], stdout=subprocess.PIPE, check=True).stdout
    documents = [json.loads(line)["text"].replace("\n", " ") for line in text.splitlines()[:600]]
    lines = []
    for document in documents:
        lines += [document[i:i + 400] for i in range(0, min(len(document), 4000), 400)] if packed else [document]
    (options.work / "text").write_text("\n".join(lines) if packed else " ".join(lines)[:1_500_000] + "\n")
    tool = options.build / "bin"
    stream = subprocess.run([tool / "pretokenize", "-q", "--format", "lines", "--tokenizer", options.data / "tokenizers/mistral-v1.model",
                             options.work / "text"], stdout=subprocess.PIPE, check=True).stdout
    mode = ["--chunk", "512"] if packed else ["--chunk", "4096", "--mode", "concat"]
    subprocess.run([tool / "pack", "-q", *mode, "-o", folder], input=stream, check=True)
    return folder


def train(options, record, name, precision):
    """The Sample of the profiled steps of a run; what its model is goes into the record."""
    model, sequence, samples, packed = MODELS[name]
    if isinstance(model, dict):
        path = options.work / f"{name}.json"
        path.write_text(json.dumps(model))
        model = path
    shards, out = shards_of(options, packed, sequence), options.work / "run"
    shutil.rmtree(out, ignore_errors=True)
    protocol.run_command(
        [options.build / "bin/train", "-q", "--progress", "never", "--device", "cpu", "--data", shards, "--model", model, "--seq",
         sequence, "--batch", samples, "--accum", 1, "--steps", options.steps + 3, "--profile", options.steps, "--save-every", 0,
         "--log-every", 1, "--kernels", "usual", "--mixed-precision", "no" if precision == "fp32" else "bf16", "--threads",
         options.threads, "--out", out])
    records = records_of(out)
    told = {one["type"]: one for one in records}
    config = json.loads(next(out.glob("checkpoints/*/config.json")).read_text())
    record.extra.setdefault("models", {})[name] = {"config": config, "parameters": told["run_begin"]["parameters"]}
    profile = told["profile"]
    profiled = slice(profile["first_step"] - 1, profile["last_step"])
    steps = profile["last_step"] - profile["first_step"] + 1
    return Sample(sequence * samples * steps, sum(figures_of(records)["cpu_times_s"][profiled]), profile["wall_time_s"],
                  {"step_s": profile["wall_time_s"] / steps,
                   "parts_s": {part: one["time_s"] / steps for part, one in profile["parts"].items()}})


def comparison_of(options, record, name):
    contestants = [Contestant(f"train, {precision}", lambda precision=precision: train(options, record, name, precision))
                   for precision in options.precisions.split(",")]
    return Comparison(f"{name}, threads {options.threads}", "tokens", contestants, threads=options.threads,
                      settings={"steps": options.steps}, **protocol.how(options))


def spans_of(packed, tokens, sequence):
    """Tokens of the documents of a step, as far as they count for attention's work."""
    length = PACKED_TOKENS if packed else sequence
    return [length] * (tokens // length)


class Table:
    """What the rounds say of a model in a precision; `model` is its config and the number of its parameters."""

    def __init__(self, reached, name, precision, model, results):
        self.name, self.precision, self.established = name, precision, results.established
        config = model["config"]
        _, sequence, samples, packed = MODELS[name]
        tokens = sequence * samples
        self.stored = 4 if precision == "fp32" else 2
        slice_tokens = max(1, (1 << 24) // config["vocab_size"])
        self.gemms, least_s, best_rate, best_share_s = [], 0, 0, 0
        for layer, count in layers_of(config, tokens, slice_tokens):
            for one_pass, rates in reached.gemm(layer, precision).items():
                best = max(rates.values())
                best_rate = max(best_rate, best)
                work = count * operations_of(layer)
                least_s += work / best
                best_share_s += work / rates["ours"]
                self.gemms.append((layer, one_pass, count, rates))
        spans = spans_of(packed, tokens, sequence)
        self.least_s = {"gemm": least_s, "attention": attention_operations(config, spans) / best_rate}
        for part, size_bytes in bytes_of(config, tokens, self.stored, model["parameters"]).items():
            self.least_s[part] = size_bytes / reached.read_bytes_per_s
        self.ours_s = best_share_s
        samples = list(results.samples(f"train, {precision}", "").values())
        self.time_s = {part: statistics.median(one["parts_s"].get(part, 0) for one in samples) for part in samples[0]["parts_s"]}
        self.step_s = statistics.median(one["step_s"] for one in samples)
        self.shares = [sum(self.least_s.values()) / one["step_s"] for one in samples]

    def lines(self):
        yield f"## {self.name}, {self.precision}"
        yield ""
        yield f"A step takes {1e3 * self.step_s:.1f} ms, its parts could take {1e3 * sum(self.least_s.values()):.1f} ms: " \
              f"{share_text(self.shares, GOAL_STEP, self.established)} of the least."
        yield ""
        yield "| part | ms a step | least, ms | least / time | of the lost time |"
        yield "|---|---:|---:|---:|---:|"
        lost = self.step_s - sum(self.least_s.values())
        rest = self.step_s
        for part in PARTS:
            time_s, least_s = self.time_s.get(part, 0), self.least_s[part]
            rest -= time_s
            share = f"{least_s / time_s:.2f}" if time_s > 0 else "-"
            yield f"| {part} | {1e3 * time_s:.2f} | {1e3 * least_s:.2f} | {share} | {100 * (time_s - least_s) / lost:.0f} % |"
        yield f"| other | {1e3 * rest:.2f} | 0 |  | {100 * rest / lost:.0f} % |"
        yield ""
        yield "| layer | pass | a step | ours, GFLOP/s | LibTorch's | oneDNN's | ours / best |"
        yield "|---|---|---:|---:|---:|---:|---:|"
        for layer, one_pass, count, rates in self.gemms:
            share = rates["ours"] / max(rates.values())
            others = " | ".join(f"{1e-9 * rates[name]:.0f}" if name in rates else "-" for name in ("torch", "onednn"))
            yield f"| {layer} | {one_pass} | {count} | {1e-9 * rates['ours']:.0f} | {others} | " \
                  f"{share:.2f}{'' if share >= GOAL_GEMM else ', misses'} |"
        yield ""

    def encoded(self):
        return {"model": self.name, "precision": self.precision, "step_time_s": self.step_s, "shares": self.shares,
                "parts": {part: {"time_s": self.time_s.get(part, 0), "least_s": self.least_s[part]} for part in PARTS},
                "gemms": [{"layer": layer, "pass": one_pass, "times": count, "flops_per_s": rates}
                          for layer, one_pass, count, rates in self.gemms]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=3)
    options, reached = parse_options(parser, MODELS)
    record = record_of(options, "Parts of a step beside what they could take", "step_parts.sh", reached,
                       __doc__.split("\n\n")[2])
    tables = []

    def text(_):
        """Markdown of the tables that are there."""
        head = ["", "## Of the least", "", "| model | precision | ms a step | least / time |", "|---|---|---:|---|"]
        for one in tables:
            share = share_text(one.shares, GOAL_STEP, one.established)
            head.append(f"| {one.name} | {one.precision} | {1e3 * one.step_s:.1f} | {share} |")
        return "\n".join(head + [""] + [line for table in tables for line in table.lines()])

    record.after = text
    for name in options.models.split(","):
        results = record.run(comparison_of(options, record, name))
        tables += [Table(reached, name, precision, record.extra["models"][name], results)
                   for precision in options.precisions.split(",")]
        record.extra["tables"] = [table.encoded() for table in tables]
        record.write()


if __name__ == "__main__":
    main()
