#!/usr/bin/env python3
"""Where a step of training goes, part by part, beside what each part could take at least on this machine.

usage: step_parts.py --build DIR --work DIR --data DIR [--rounds N] [--cpus LIST] [--models LIST] [--precisions LIST] [--steps N] OUT

A part's time is that of `train --profile`. What it could take at least is, of GEMMs, their operations at the best rate that ours,
LibTorch's or oneDNN's kernels reach at each shape with operands in no cache (gemm_speed); of attention, its operations at the best of
these rates; of all else the bytes that must be read and written, at the rate at which the machine reads memory (gpu-probe). Bytes are
counted once for what is read and once for what is written, whatever a cache may save, so that a part may be faster than that.
"""
import argparse
import json
import pathlib
import subprocess
import sys

from machine_rates import conditions, layers_of, operations_of, parse_options, run
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


def train(options, name, precision):
    """The records of a run of median time: (begin, profile, its model's config)."""
    model, sequence, samples, packed = MODELS[name]
    if isinstance(model, dict):
        path = options.work / f"{name}.json"
        path.write_text(json.dumps(model))
        model = path
    shards, runs = shards_of(options, packed, sequence), []
    for number in range(options.rounds):
        out = options.work / f"run-{name}-{precision}-{number}"
        run([options.build / "bin/train", "-q", "--progress", "never", "--device", "cpu", "--data", shards, "--model", model, "--seq",
             sequence, "--batch", samples, "--accum", 1, "--steps", options.steps + 3, "--profile", options.steps, "--save-every", 0, "--kernels", "usual",
             "--mixed-precision", "no" if precision == "fp32" else "bf16", "--threads", len(options.cpus), "--out", out], options.cpus)
        records = [json.loads(line) for line in open(out / "metrics.jsonl")]
        told = {record["type"]: record for record in records}
        config = json.loads(next(out.glob("checkpoints/*/config.json")).read_text())
        runs.append((told["run_begin"], told["profile"], config))
        subprocess.run(["rm", "-r", out], check=True)
    return sorted(runs, key=lambda one: one[1]["wall_time_s"])[len(runs) // 2]


def spans_of(packed, tokens, sequence):
    """Tokens of the documents of a step, as far as they count for attention's work."""
    length = PACKED_TOKENS if packed else sequence
    return [length] * (tokens // length)


class Table:
    def __init__(self, reached, name, precision, begin, profile, config):
        self.name, self.precision, self.begin, self.profile = name, precision, begin, profile
        _, sequence, samples, packed = MODELS[name]
        tokens = sequence * samples
        self.stored = 4 if precision == "fp32" else 2
        slice_tokens = max(1, (1 << 24) // config["vocab_size"])
        parameters = begin["parameters"]
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
        for part, size_bytes in bytes_of(config, tokens, self.stored, parameters).items():
            self.least_s[part] = size_bytes / reached.read_bytes_per_s
        self.ours_s = best_share_s
        steps = profile["last_step"] - profile["first_step"] + 1
        self.time_s = {part: told["time_s"] / steps for part, told in profile["parts"].items()}
        self.step_s = profile["wall_time_s"] / steps

    @property
    def share(self):
        return sum(self.least_s.values()) / self.step_s

    def lines(self):
        yield f"## {self.name}, {self.precision}"
        yield ""
        yield f"A step takes {1e3 * self.step_s:.1f} ms, its parts could take {1e3 * sum(self.least_s.values()):.1f} ms: " \
              f"{self.share:.2f} of the least (goal {GOAL_STEP}: {'holds' if self.share >= GOAL_STEP else 'misses'})."
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
        return {"model": self.name, "precision": self.precision, "step_time_s": self.step_s, "share": self.share,
                "parts": {part: {"time_s": self.time_s.get(part, 0), "least_s": self.least_s[part]} for part in PARTS},
                "gemms": [{"layer": layer, "pass": one_pass, "times": count, "flops_per_s": rates}
                          for layer, one_pass, count, rates in self.gemms]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=3)
    options, told, reached = parse_options(parser, MODELS)
    tables = []
    for name in options.models.split(","):
        for precision in options.precisions.split(","):
            print(f"step_parts: {name}, {precision}", file=sys.stderr)
            tables.append(Table(reached, name, precision, *train(options, name, precision)))
    pathlib.Path(f"{options.out}.json").write_text(json.dumps(
        {"machine": told, "threads": len(options.cpus), "memory_read_bytes_per_s": reached.read_bytes_per_s,
         "tables": [table.encoded() for table in tables]}, indent=1) + "\n")
    head = [f"# Parts of a step beside what they could take", "",
            f"{conditions('step_parts.sh', told, reached)}. {' '.join(__doc__.split(chr(10) * 2)[2].split())}",
            "", "| model | precision | ms a step | least / time |", "|---|---|---:|---:|"]
    head += [f"| {one.name} | {one.precision} | {1e3 * one.step_s:.1f} | {one.share:.2f} |" for one in tables] + [""]
    pathlib.Path(f"{options.out}.md").write_text("\n".join(head + [line for table in tables for line in table.lines()]))


if __name__ == "__main__":
    main()
