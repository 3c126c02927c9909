#!/usr/bin/env python3
"""What `generate --quant` gains and what it costs: perplexity, speed and memory with none, int8 and nf4.

usage: quantised_generation.py [--bin DIR] [--rounds N] [--steps N] [--tokens N] [--cpus LIST] [--batches LIST] WORK_FOLDER OUT

  --bin DIR    folder of the tools (default: build/release/bin)
  --rounds N   interleaved repetitions (default: 5, the fewest of which anything is established)
  --steps N    that llama-1m is trained before its perplexity is measured (default: 300)
  --tokens N   that are decoded after the first (default: 64)
  --cpus LIST  the processor that generation is pinned to (default: the one with the least to do)
  --batches L  sequences at once (default: 1,8)

Perplexity is that of a llama-1m trained on Shakespeare, on the twentieth of the documents that it did not see. Speed is
that of a Llama 12x768 with random weights and a head of its own, 110 M of them read a step, on one thread: processor
time of decoding alone, the run of --tokens + 1 less that of one token, by the protocol of protocol.py. What a run leaves is
kept in the folder. Writes OUT.json, from which the same command goes on, and OUT.md. Each quantised contestant is compared with
those in full precision; it is the one that the name of its comparison says.
"""
import argparse
import json
import os
import pathlib
import subprocess

import protocol
from protocol import Comparison, Contestant

SOURCE = pathlib.Path(__file__).resolve().parents[2]
QUANTS = ["none", "int8", "nf4"]
CONTESTANTS = [(precision, quant) for precision in ("no", "bf16") for quant in QUANTS]
WIDE = {"model_type": "llama", "vocab_size": 32000, "hidden_size": 768, "intermediate_size": 2048, "num_hidden_layers": 12,
        "num_attention_heads": 12, "num_key_value_heads": 12, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5,
        "rope_theta": 10000, "tie_word_embeddings": False, "hidden_act": "silu"}
PROMPT = "First Citizen: Before we proceed any further, hear me speak. All: Speak, speak. First Citizen: You"


def run(options, *arguments, stdin=None):
    environment = dict(os.environ, PATH=f"{options.bin}:{os.environ['PATH']}")
    return subprocess.run([str(a) for a in arguments], check=True, capture_output=True, text=True, input=stdin,
                          cwd=options.folder, env=environment).stdout


def shell(options, line):
    run(options, "bash", "-euo", "pipefail", "-c", line)


def make_models(options):
    if not (options.folder / "shards").exists():
        shell(options, f"pretokenize -q --tokenizer {SOURCE}/examples/data/mistral-v1.model "
                       f"--format paragraphs {SOURCE}/examples/data/tinyshakespeare.txt | pack -q --chunk 1024 -o shards")
    if not (options.folder / "small" / "latest").exists():
        shell(options, f"rm -rf small; train -q --data shards --model llama-1m --steps {options.steps} --seq 256 --batch 8 "
                       "--eval-split 0.05 --save-every 0 --save-model-only --out small")
    if not (options.folder / "wide" / "latest").exists():
        (options.folder / "wide.json").write_text(json.dumps(WIDE))
        shell(options, "rm -rf wide; train -q --data shards --model wide.json --steps 1 --seq 32 --batch 1 "
                       "--save-every 0 --save-model-only --out wide")


def perplexity(options, precision, quant):
    out = run(options, "evaluate", "-q", "--checkpoint", "small", "--data", "shards", "--eval-split", "0.05", "--seq", "256",
              "--mixed-precision", precision, "--quant", quant)
    return json.loads(out)


def decode(options, precision, quant, batch):
    """The Sample of decoding alone."""
    lines = "".join(json.dumps({"prompt": PROMPT + " are" * i}) + "\n" for i in range(batch))

    def generate(tokens):
        return protocol.run_command([options.bin / "generate", "-q", "--checkpoint", options.folder / "wide", "--batch", batch,
                                     "--max-tokens", tokens, "--threads", 1, "--mixed-precision", precision, "--quant", quant],
                                    stdin=lines)

    first = generate(1)
    return generate(options.tokens + 1).sample(options.tokens * batch, first, first_token_s=first.wall_s)


def name(precision, quant):
    return ("fp32" if precision == "no" else "bf16") + ("" if quant == "none" else " " + quant)


def comparison_of(options, batch):
    """int8 in fp32 comes first; of the other quantised ones the ratios are with `own` in a claim."""
    order = [("no", "int8"), *(one for one in CONTESTANTS if one != ("no", "int8"))]
    contestants = [Contestant(name(*one), lambda one=one: decode(options, *one, batch),
                              peer="quantised" if one[1] != "none" else None) for one in order]
    return Comparison(f"decoding {batch} at once", "tokens", contestants, settings={"tokens": options.tokens},
                      **protocol.how(options))


def extra_text(record):
    """Markdown of perplexity, and of ratios to full precision."""
    told = record.extra["perplexity"]
    plain = told["fp32"]["loss_nats"]
    lines = ["", f"## Perplexity on {told['fp32']['labels']} held-out labels, llama-1m", "",
             "| | perplexity | loss, nats | change of the loss |", "|---|---|---|---|"]
    lines += [f"| {who} | {own['perplexity']:.4f} | {own['loss_nats']:.5f} | {own['loss_nats'] - plain:+.5f} |" for who, own in told.items()]
    for state in record.states:
        results = protocol.Results(state)
        lines += ["", f"## {state['name']}: times as fast as fp32", "", "| | ratio | peak memory, MB |", "|---|---|---|"]
        for who in results.contestants(""):
            peak = max(sample["max_memory_bytes"] for sample in results.samples(who, "").values())
            lines.append(f"| {who} | {protocol.spread(results.ratios('fp32', '', who), 2)} | {peak / 1e6:.0f} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, default=SOURCE / "build/release/bin")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--batches", default="1,8")
    protocol.add_options(parser)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("out")
    options = parser.parse_args()
    options.bin, options.folder = options.bin.resolve(), options.folder.resolve()
    options.folder.mkdir(parents=True, exist_ok=True)
    make_models(options)
    record = protocol.Record(options.out, "Quantised weights in generation", "scripts/compare/quantised_generation.py")
    if "perplexity" not in record.extra:
        record.extra["perplexity"] = {name(*one): perplexity(options, *one) for one in CONTESTANTS}
    record.after = extra_text
    for batch in map(int, options.batches.split(",")):
        record.run(comparison_of(options, batch))


if __name__ == "__main__":
    main()
