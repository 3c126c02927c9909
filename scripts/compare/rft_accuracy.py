"""The runs of rft_accuracy.sh."""
import argparse
import json
import math
import pathlib
import statistics
import sys
import time

from train_runs import ROOT, describe, records_of, run, write_report

TEMPLATE = ROOT / "examples/rft/qa.template"
PRESETS = ("rft-baseline", "rft-fast")


def wilson(right, n, z=1.959964):
    """Wilson's interval at 95 %, computed here from the counts alone."""
    share, divisor = right / n, 1 + z * z / n
    middle, half = share + z * z / (2 * n), z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return (middle - half) / divisor, (middle + half) / divisor


def pack(scratch, name, lines):
    questions = scratch / f"{name}.jsonl"
    questions.write_text("".join(lines))
    tokens, shards = scratch / f"{name}.tokens", scratch / name
    run("pretokenize", "-q", "--records", "sft", "--template", TEMPLATE, questions, "-o", tokens)
    run("pack", "-q", "--chunk", 256, "--overflow", "drop", tokens, "-o", f"{shards}/")
    return shards


def score(options, checkpoint):
    """How many of the questions a model answers rightly, and how many it answers at all."""
    units, samples = options.scratch / "units", options.scratch / "samples.jsonl"
    samples.write_text(run("generate", "-q", "--checkpoint", checkpoint, "--template", TEMPLATE, "--input",
                           units / "test.prompts.jsonl", "--max-tokens", 100, "--batch", 96, "--mixed-precision", "no"))
    said = json.loads(run("evaluate", "-q", "--metric", "answers", "--samples", samples, "--gold", units / "test.gold.jsonl",
                          "--answer-format", "tag"))
    return {"n": said["n"], "right": round(said["accuracy"] * said["n"]), "answered": round(said["answer_rate"] * said["n"])}


def tune(options, preset, shards, base, seed):
    out, begin = options.scratch / f"{preset}-{seed}", time.monotonic()
    run("train", "-q", "--preset", preset, "--init", base, "--data", shards, "--seq", 256, "--packing", "off", "--seed", seed,
        "--log-every", 1, "--out", out)
    took, steps = time.monotonic() - begin, records_of(out, "step")
    return {"preset": preset, "seed": seed, "steps": len(steps), "tokens": sum(step["tokens"] for step in steps),
            "loss": steps[-1]["loss_nats"], "seconds": took, **score(options, out)}


def share(right, n):
    low, high = wilson(right, n)
    return f"{right / n:.1%} ({low:.1%} to {high:.1%})"


def report(options, before, rows):
    """The lines of it, and whether the optimised configuration keeps the accuracy."""
    lines = ["# Accuracy of rft-fast beside rft-baseline\n", describe(ROOT / "build/release/bin"), "",
             f"llama-1m on bytes after {options.steps} steps of 16 of {options.labelled} questions with worked answers, tuned on "
             f"{options.tuned} others for 3 epochs by each preset (--seq 256 --packing off, whole weights), and asked "
             f"{options.questions} that nothing was trained on. In brackets Wilson's 95 % interval.\n",
             "| | seed | steps | tokens | last loss | tuning | right | answers at all |", "|---|---|---|---|---|---|---|---|",
             f"| before | | | | | | {share(before['right'], before['n'])} | {before['answered'] / before['n']:.1%} |"]
    for row in rows:
        lines.append(f"| {row['preset']} | {row['seed']} | {row['steps']} | {row['tokens']:,} | {row['loss']:.4f} | "
                     f"{row['seconds']:.0f} s | {share(row['right'], row['n'])} | {row['answered'] / row['n']:.1%} |")
    # Seeds answer the same questions: together they are no more of these, and the interval is no narrower.
    n, right = options.questions, {}
    for preset in PRESETS:
        right[preset] = statistics.mean(row["right"] for row in rows if row["preset"] == preset)
        lines.append(f"| {preset} | mean | | | | | {share(right[preset], n)} | |")
    low, high = wilson(right[PRESETS[0]], n)
    fast = right[PRESETS[1]] / n
    place = "below" if fast < low else "above" if fast > high else "within"
    lines.append(f"\nrft-fast is {place} the interval of rft-baseline at equal samples: {fast:.1%} beside {low:.1%} to "
                 f"{high:.1%}. Before it was tuned the model had {before['right'] / n:.1%}" +
                 (", which is below it." if before["right"] / n < low else
                  ": that is not below it, so that keeping accuracy says little; fewer --steps before give tuning more to do."))
    return "\n".join(lines) + "\n", place != "below"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scratch", type=pathlib.Path, required=True)
    for name, default in (("labelled", 2000), ("tuned", 1920), ("questions", 1000), ("steps", 300), ("seeds", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("out", nargs="?", type=pathlib.Path)
    options = parser.parse_args()
    units = options.scratch / "units"
    run(sys.executable, ROOT / "scripts/make_units.py", "--out", units, "--seed", 1, "--train", options.labelled + options.tuned,
        "--test", options.questions)
    lines = (units / "train.sft.jsonl").read_text().splitlines(keepends=True)
    base = options.scratch / "base"
    run("train", "-q", "--data", pack(options.scratch, "labelled", lines[:options.labelled]), "--model", "llama-1m", "--steps",
        options.steps, "--batch", 16, "--accum", 1, "--seq", 256, "--lr", "1e-3", "--seed", 1, "--out", base)
    shards = pack(options.scratch, "tuned", lines[options.labelled:])
    before, rows = score(options, base), []
    print(before, file=sys.stderr, flush=True)
    for seed in range(1, options.seeds + 1):
        for preset in PRESETS:
            rows.append(tune(options, preset, shards, base, seed))
            print(rows[-1], file=sys.stderr, flush=True)
    text, kept = report(options, before, rows)
    write_report(text, options.out)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
