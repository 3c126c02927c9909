"""The runs of ten_memory.sh."""
import argparse
import json
import os
import pathlib
import sys

from ten_models import LONG_MODELS, MODELS, long_shards, write_config
from train_runs import ROOT, describe, records_of, run

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import svg_lines  # noqa: E402

MOST_OFF = 0.1
ALL_MODELS = MODELS | LONG_MODELS
WAYS = {"plain": ("ten", []), "full": ("ten", ["--checkpoint-activations", "full"]),
        "tbptt": ("ten", ["--checkpoint-activations", "full", "--tbptt", 2048]),
        "llama": ("llama", ["--checkpoint-activations", "full"])}
NAMES = {"plain": "nothing computed again", "full": "layers computed again", "tbptt": "gradient cut every 2,048 tokens",
         "llama": "Llama, layers computed again"}


def measure(options, way, tokens):
    scratch = pathlib.Path(options.scratch)
    kind, flags = WAYS[way]
    shards = scratch / f"long-{tokens}.shards"
    if not shards.exists():
        long_shards(scratch, tokens, 2)
    model = write_config(scratch / f"{kind}.json", ALL_MODELS[options.model][kind])
    common = ["train", "--quiet", "--data", shards, "--model", model, "--seq", tokens, "--batch", 1, "--accum", 1,
              "--steps", 1 if options.model in LONG_MODELS else 2, "--seed", 1, "--save-every", 0, "--log-every", 1,
              "--mixed-precision", "no", *flags]
    out, load = scratch / f"{way}-{tokens}", os.getloadavg()[0]
    run(*common, "--dry-run", "--out", out, "--summary", scratch / "dry.json")
    foretold = json.loads((scratch / "dry.json").read_text())["memory_bytes"]
    run(*common, "--out", out, "--summary", scratch / "run.json")
    steps = [record for record in records_of(out) if record["type"] == "step"]
    summary = json.loads((scratch / "run.json").read_text())
    return {"model": options.model, "way": way, "tokens": tokens, "max_memory_bytes": steps[-1]["max_memory_bytes"],
            "foretold_bytes": foretold["total"], "step_time_s": steps[-1]["step_time_s"],
            "cpu_cores": steps[-1]["cpu_cores"], "load": load,
            "by_category": summary.get("memory_bytes")}


def off(one):
    return one["foretold_bytes"] / one["max_memory_bytes"] - 1


def report(runs):
    out = ["# Peak memory against the length of a sample\n",
           describe(ROOT / "build/release/bin"), "",
           "One sample a step, fp32, one run of two steps each, of one where a step takes minutes. Foretold: --dry-run, and how far it is off.\n",
           "| model | way | tokens | peak MB | foretold MB | off by | bytes a token more than before | s a step |",
           "|---|---|---|---|---|---|---|---|"]
    before = {}
    for one in runs:
        key = (one["model"], one["way"])
        last = before.get(key)
        more = (f"{(one['max_memory_bytes'] - last['max_memory_bytes']) / (one['tokens'] - last['tokens']):.0f}"
                if last else "-")
        before[key] = one
        out.append(f"| {one['model']} | {NAMES[one['way']]} | {one['tokens']} | {one['max_memory_bytes'] / 1e6:.0f} | "
                   f"{one['foretold_bytes'] / 1e6:.0f} | {off(one):+.1%} | {more} | {one['step_time_s']:.2f} |")
    return "\n".join(out) + "\n"


def plot(runs):
    lines = {}
    for one in runs:
        name = f"{one['model']}: {NAMES[one['way']]}"
        lines.setdefault(name, []).append([one["tokens"], one["max_memory_bytes"] / 1e6])
        lines.setdefault(f"{name}, foretold", []).append([one["tokens"], one["foretold_bytes"] / 1e6])
    return svg_lines.svg({"title": "Peak memory of training", "x_label": "tokens of a sample", "y_label": "MB", "log_x": True,
                          "log_y": True, "lines": lines})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scratch", required=True)
    parser.add_argument("--model", choices=list(ALL_MODELS), default="ten-micro")
    parser.add_argument("--tokens")
    parser.add_argument("--ways")
    parser.add_argument("out")
    options = parser.parse_args()
    shape = ALL_MODELS[options.model]
    options.tokens = options.tokens or shape.get("tokens", "2048,8192,32768,65536,131072,262144")
    options.ways = options.ways or shape.get("ways", "plain,full,tbptt")
    if unknown := set(options.ways.split(",")) - set(WAYS):
        parser.error(f"unknown {', '.join(unknown)}: one of {', '.join(WAYS)}")
    if absent := {WAYS[way][0] for way in options.ways.split(",")} - set(shape):
        parser.error(f"--ways: {options.model} has no {', '.join(absent)} beside it")
    path = pathlib.Path(f"{options.out}.json")
    runs = json.loads(path.read_text()) if path.exists() else []
    for tokens in map(int, options.tokens.split(",")):
        for way in options.ways.split(","):
            if any((one["model"], one["way"], one["tokens"]) == (options.model, way, tokens) for one in runs):
                continue
            runs.append(measure(options, way, tokens))
            runs.sort(key=lambda one: (one["model"], one["way"], one["tokens"]))
            path.write_text("[" + ",\n".join(map(json.dumps, runs)) + "]\n")
            pathlib.Path(f"{options.out}.md").write_text(report(runs))
            pathlib.Path(f"{options.out}.svg").write_text(plot(runs))
            print(f"{way}, {tokens} tokens", file=sys.stderr, flush=True)
    wrong = [one for one in runs if abs(off(one)) > MOST_OFF]
    for one in wrong:
        print(f"{one['way']}, {one['tokens']} tokens: foretold {off(one):+.1%}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
