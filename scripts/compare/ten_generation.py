"""The runs of ten_generation.sh."""
import argparse
import json
import os
import pathlib
import statistics
import sys

from ten_models import MODELS, long_shards, write_config
from train_runs import ROOT, describe, run

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import svg_lines  # noqa: E402


def trained(scratch, model, kind):
    """A model that has learnt enough of a text not to end its samples: greedy, it does not."""
    shards = scratch / "long-1024.shards"
    if not shards.exists():
        long_shards(scratch, 1024, 500)
    config = write_config(scratch / f"{kind}.json", MODELS[model][kind])
    run("train", "--quiet", "--data", shards, "--model", config, "--seq", 1024, "--batch", 2, "--steps", 50, "--lr", "2e-3",
        "--save-every", 0, "--seed", 1, "--out", scratch / kind)
    return scratch / kind


def measure(options, kind, tokens, number):
    scratch, load = options.scratch, os.getloadavg()[0]
    run("generate", "--quiet", "--checkpoint", scratch / kind, "--prompt", "First Citizen:", "--max-tokens", tokens,
        "--temperature", 0, "--threads", options.threads, "--summary", scratch / "generate.json")
    summary = json.loads((scratch / "generate.json").read_text())
    if summary["tokens"] < tokens:
        raise RuntimeError(f"the sample ended after {summary['tokens']} of {tokens} tokens")
    return {"kind": kind, "tokens": tokens, "round": number, "threads": options.threads, "load": load,
            "wall_s": summary["wall_time_s"], "cpu_s": summary["cpu_time_s"], "max_memory_bytes": summary["max_memory_bytes"]}


def medians(runs):
    """{kind: [what its rounds of so many tokens have in the middle, ...]}"""
    groups = {}
    for one in runs:
        groups.setdefault((one["kind"], one["tokens"]), []).append(one)
    of_kinds = {}
    for (kind, tokens), rounds in sorted(groups.items()):
        of_kinds.setdefault(kind, []).append({"tokens": tokens, "rounds": len(rounds), **{
            name: statistics.median(one[name] for one in rounds) for name in ("wall_s", "cpu_s", "max_memory_bytes")}})
    return of_kinds


def report(model, runs):
    loads = [one["load"] for one in runs]
    out = [f"# Generation, {model}\n",
           f"{describe(ROOT / 'build/release/bin')} One greedy sample, fp32, threads {runs[-1]['threads']}; medians of rounds, "
           f"load {min(loads):.1f} to {max(loads):.1f} before them.\n",
           "| | tokens | rounds | s | s of processors | ms a token more | peak MB |", "|---|---|---|---|---|---|---|"]
    for kind, of_kind in medians(runs).items():
        for before, one in zip([None, *of_kind], of_kind):
            out.append(f"| {kind} | {one['tokens']} | {one['rounds']} | {one['wall_s']:.2f} | {one['cpu_s']:.2f} | "
                       f"{1000 * step_time(before, one):.3f} | {one['max_memory_bytes'] / 1e6:.0f} |")
    return "\n".join(out) + "\n"


def step_time(before, one):
    if before is None:
        return one["wall_s"] / one["tokens"]
    return (one["wall_s"] - before["wall_s"]) / (one["tokens"] - before["tokens"])


def plots(runs):
    """[(name, svg)]"""
    runs = medians(runs)
    times = {kind: [[one["tokens"], 1000 * step_time(before, one)] for before, one in zip(of_kind, of_kind[1:])]
             for kind, of_kind in runs.items()}
    memory = {kind: [[one["tokens"], one["max_memory_bytes"] / 1e6] for one in of_kind] for kind, of_kind in runs.items()}
    of_all = {"x_label": "tokens", "log_x": True, "from_zero": True}
    drawn = [("memory", svg_lines.svg({**of_all, "title": "Peak memory of generation", "y_label": "MB", "lines": memory}))]
    if any(times.values()):
        drawn.append(("time", svg_lines.svg({**of_all, "title": "Time of a generated token", "y_label": "ms", "lines": times})))
    return drawn


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scratch", type=pathlib.Path, required=True)
    parser.add_argument("--model", choices=list(MODELS), default="ten-micro")
    parser.add_argument("--tokens", default="1000,2000,5000,10000,20000,50000,100000")
    parser.add_argument("--kinds", default="ten,llama")
    parser.add_argument("--llama-tokens", type=int, default=20000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("out")
    options = parser.parse_args()
    kinds, runs = options.kinds.split(","), []
    for kind in kinds:
        trained(options.scratch, options.model, kind)
        measure(options, kind, 100, 0)
    cases = [(kind, tokens) for tokens in sorted(map(int, options.tokens.split(","))) for kind in kinds
             if kind != "llama" or tokens <= options.llama_tokens]
    for number in range(1, options.rounds + 1):
        for kind, tokens in cases[::1 if number % 2 else -1]:
            runs.append(measure(options, kind, tokens, number))
            print(f"{kind}, round {number}: {tokens} tokens in {runs[-1]['wall_s']:.1f} s", file=sys.stderr, flush=True)
            pathlib.Path(f"{options.out}.json").write_text("[" + ",\n".join(map(json.dumps, runs)) + "]\n")
            pathlib.Path(f"{options.out}.md").write_text(report(options.model, runs))
    for name, drawn in plots(runs):
        pathlib.Path(f"{options.out}-{name}.svg").write_text(drawn)


if __name__ == "__main__":
    main()
