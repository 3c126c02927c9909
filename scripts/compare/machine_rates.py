"""What this machine reaches, for the comparisons with what it could: rates of GEMMs at given shapes, and of reading memory."""
import json
import pathlib
import statistics
import subprocess
import sys

import protocol
from machine import Machine


def run(command, cpus):
    command = ["taskset", "-c", ",".join(map(str, cpus)), *map(str, command)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr[-3000:]}")
    return done.stdout


def parse_options(parser, models):
    """(the options that the comparisons with what a machine could share, a thread for each processor; its Rates)"""
    for folder in ("--build", "--work", "--data"):
        parser.add_argument(folder, type=lambda path: pathlib.Path(path).resolve(), required=True)
    parser.add_argument("--models", default=",".join(models))
    parser.add_argument("--precisions", default="fp32,bf16")
    protocol.add_options(parser)
    parser.add_argument("out")
    options = parser.parse_args()
    options.threads = len(options.cpus or [None])
    return options, Rates(options.build, options.work, options.cpus or Machine().choose(options.threads))


def record_of(options, title, script, reached, what):
    """A Record with the rates of the machine; `what` says what is measured and counted."""
    threads = f"{options.threads} thread{'s' if options.threads > 1 else ''}"
    notes = f"{threads}, which read {1e-9 * reached.read_bytes_per_s:.1f} GB/s. {' '.join(what.split())}"
    record = protocol.Record(options.out, title, f"scripts/compare/{script}", notes=notes)
    record.extra["memory_read_bytes_per_s"] = reached.read_bytes_per_s
    return record


def share_text(shares, goal, established):
    """0.91 (0.89 to 0.93; goal 0.85: holds), of the shares of all rounds."""
    found = protocol.interval(shares)
    ends = f"{found[0]:.2f} to {found[1]:.2f}; " if found else ""
    return f"{statistics.median(shares):.2f} ({ends}goal {goal}: {protocol.verdict(goal, found and found[0], established)})"


class Rates:
    """What this machine reaches, on as many threads as there are processors."""

    def __init__(self, build, work, cpus):
        self.build, self.work, self.cpus = build, work, cpus
        self.gemms = {}
        probe = json.loads(run([build / "bin/gpu-probe", "--json", "--quick", "--device", "cpu", "--threads", len(self.cpus)],
                               self.cpus))
        self.read_bytes_per_s = next(one["median"] for one in probe["measured"] if one["what"] == "memory_read")

    def gemm(self, layer, precision):
        """{pass: {kernels: operations a second}} of a layer, TOKENSxINxOUT."""
        key = (layer, precision)
        if key not in self.gemms:
            summary = self.work / "gemm.json"
            run([self.build / "tests/gemm_speed", "--precision", precision, "--layer", layer, "--threads", len(self.cpus),
                 "--summary", summary], self.cpus)
            rates = {}
            for row in json.loads(summary.read_text())["gemms"]:
                rates.setdefault(row["pass"], {})[row["kernels"]] = row["flops_per_s"]
            self.gemms[key] = rates
        return self.gemms[key]


def layers_of(config, tokens, slice_tokens):
    """[(layer, how often a step)] of a Llama's GEMMs: projections that share their input are one."""
    width, heads = config["hidden_size"], config["num_attention_heads"]
    kv_heads = config.get("num_key_value_heads", heads)
    head_dim = config.get("head_dim") or width // heads
    layers, inner = config["num_hidden_layers"], config["intermediate_size"]
    slices = -(-tokens // slice_tokens)
    return [(f"{tokens}x{width}x{(heads + 2 * kv_heads) * head_dim}", layers), (f"{tokens}x{heads * head_dim}x{width}", layers),
            (f"{tokens}x{width}x{2 * inner}", layers), (f"{tokens}x{inner}x{width}", layers),
            (f"{tokens // slices}x{width}x{config['vocab_size']}", slices)]


def operations_of(layer):
    tokens, inner, outer = map(int, layer.split("x"))
    return 2 * tokens * inner * outer
