#!/usr/bin/env python3
"""What `generate --quant` gains and what it costs: perplexity, speed and memory with none, int8 and nf4.

usage: quantised_generation.py [--bin DIR] [--rounds N] [--steps N] [--tokens N] [--cpu N] WORK_FOLDER

  --bin DIR    folder of the tools (default: build/release/bin)
  --rounds N   interleaved repetitions, whose order turns round each time (default: 3)
  --steps N    that llama-1m is trained before its perplexity is measured (default: 300)
  --tokens N   that are decoded after the first (default: 64)
  --cpu N      the processor that generation is pinned to (default: 0)

Perplexity is that of a llama-1m trained on Shakespeare, on the twentieth of the documents that it did not see. Speed is
that of a Llama 12x768 with random weights and a head of its own, 110 M of them read a step, on one thread: processor
time of decoding alone, the run of --tokens + 1 less that of one token. What a run leaves is kept in the folder.
Prints the report.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess

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


def generate(options, precision, quant, batch, tokens):
    lines = "".join(json.dumps({"prompt": PROMPT + " are" * i}) + "\n" for i in range(batch))
    run(options, "taskset", "-c", options.cpu, "generate", "-q", "--checkpoint", "wide", "--batch", batch, "--max-tokens",
        tokens, "--threads", 1, "--mixed-precision", precision, "--quant", quant, "--summary", "summary.json", stdin=lines)
    return json.loads((options.folder / "summary.json").read_text())


def decode(options, precision, quant, batch):
    """Processor milliseconds of a step, tokens a second by the clock, and the peak of memory."""
    first = generate(options, precision, quant, batch, 1)
    whole = generate(options, precision, quant, batch, options.tokens + 1)
    seconds = whole["cpu_time_s"] - first["cpu_time_s"]
    steps = whole["steps"] - first["steps"]
    return {"step_ms": 1e3 * seconds / steps, "tokens_per_s": (whole["tokens"] - first["tokens"]) / seconds,
            "max_memory_bytes": whole["max_memory_bytes"], "start_s": first["wall_time_s"]}


def name(precision, quant):
    return ("fp32" if precision == "no" else "bf16") + ("" if quant == "none" else " " + quant)


def spread(values, digits):
    values = sorted(values)
    return f"{statistics.median(values):.{digits}f} ({values[0]:.{digits}f} to {values[-1]:.{digits}f})"


def report(options, measured, rounds):
    print(f"llama-1m after {options.steps} steps, {measured[('no', 'none')]['labels']} held-out labels.\n")
    print("| | perplexity | loss, nats | change of the loss |\n|---|---|---|---|")
    plain = measured[("no", "none")]["loss_nats"]
    for contestant in CONTESTANTS:
        own = measured[contestant]
        print(f"| {name(*contestant)} | {own['perplexity']:.4f} | {own['loss_nats']:.5f} | {own['loss_nats'] - plain:+.5f} |")
    for batch in (1, 8):
        print(f"\nDecoding {batch} at once, one thread, {len(rounds)} rounds: medians (lowest to highest).\n")
        print("| | tokens of a processor's second | fp32's time over its own | peak memory, MB | start to first token, s |")
        print("|---|---|---|---|---|")
        for contestant in CONTESTANTS:
            own = [r[(batch, *contestant)] for r in rounds]
            ratio = [r[(batch, "no", "none")]["step_ms"] / r[(batch, *contestant)]["step_ms"] for r in rounds]
            print(f"| {name(*contestant)} | {spread([o['tokens_per_s'] for o in own], 1)} | {spread(ratio, 2)} | "
                  f"{statistics.median(o['max_memory_bytes'] for o in own) / 1e6:.0f} | "
                  f"{statistics.median(o['start_s'] for o in own):.1f} |")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, default=SOURCE / "build/release/bin")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--cpu", type=int, default=0)
    parser.add_argument("folder", type=pathlib.Path)
    options = parser.parse_args()
    options.bin, options.folder = options.bin.resolve(), options.folder.resolve()
    options.folder.mkdir(parents=True, exist_ok=True)
    make_models(options)
    measured = {contestant: perplexity(options, *contestant) for contestant in CONTESTANTS}
    rounds = []
    for number in range(options.rounds):
        order = CONTESTANTS if number % 2 == 0 else CONTESTANTS[::-1]
        rounds.append({(batch, *contestant): decode(options, *contestant, batch) for batch in (1, 8)
                       for contestant in order})
    report(options, measured, rounds)


if __name__ == "__main__":
    main()
