"""The runs of ten_generation.sh, by the protocol of protocol.py: a comparison for each number of tokens."""
import argparse
import json
import pathlib
import statistics
import sys

import protocol
from protocol import Comparison, Contestant, ContestantFailed
from ten_models import MODELS, long_shards, write_config
from train_runs import run

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


def measure(options, kind, tokens):
    """A whole process that generates one greedy sample."""
    summary = options.scratch / "generate.json"
    done = protocol.run_command(["generate", "--quiet", "--checkpoint", options.scratch / kind, "--prompt", "First Citizen:",
                                 "--max-tokens", tokens, "--temperature", 0, "--threads", options.threads, "--summary", summary])
    made = json.loads(summary.read_text())["tokens"]
    if made < tokens:
        raise ContestantFailed(f"the sample ended after {made} of {tokens} tokens")
    return done.sample(tokens)


def medians(record):
    """{kind: [(tokens, seconds, bytes of memory)]}: CPU seconds of one thread, of several those of the wall."""
    of_kinds = {}
    for state in sorted(record.states, key=lambda state: state["settings"]["tokens"]):
        results = protocol.Results(state)
        clock = "cpu_s" if state["settings"]["threads"] == 1 else "wall_s"
        for kind in results.contestants(""):
            samples = list(results.samples(kind, "").values())
            of_kinds.setdefault(kind, []).append((state["settings"]["tokens"], statistics.median(one[clock] for one in samples),
                                                  statistics.median(one["max_memory_bytes"] for one in samples)))
    return of_kinds


def steps(of_kind):
    """[(tokens, seconds of a token more)]: what so many take longer than the number before."""
    return [(tokens, (s - s_before) / (tokens - before))
            for (before, s_before, _), (tokens, s, _) in zip([(0, 0.0, 0), *of_kind], of_kind)]


def extra_text(record):
    lines = ["", "## Time and memory of a token more", "", "| | tokens | s | ms a token more | peak MB |", "|---|---:|---:|---:|---:|"]
    for kind, of_kind in medians(record).items():
        lines += [f"| {kind} | {tokens} | {s:.2f} | {1000 * step_s:.3f} | {memory / 1e6:.0f} |"
                  for (tokens, s, memory), (_, step_s) in zip(of_kind, steps(of_kind))]
    return "\n".join(lines) + "\n"


def plots(record):
    """[(name, svg)]"""
    runs = medians(record)
    times = {kind: [[tokens, 1000 * step_s] for tokens, step_s in steps(of_kind)[1:]] for kind, of_kind in runs.items()}
    memory = {kind: [[tokens, size / 1e6] for tokens, _, size in of_kind] for kind, of_kind in runs.items()}
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
    parser.add_argument("--threads", type=int, default=1)
    protocol.add_options(parser)
    parser.add_argument("out")
    options = parser.parse_args()
    kinds = options.kinds.split(",")
    for kind in kinds:
        trained(options.scratch, options.model, kind)
    record = protocol.Record(options.out, f"Generation, {options.model}", "scripts/compare/ten_generation.sh",
                             notes="One greedy sample, fp32.")
    record.after = extra_text
    for tokens in sorted(map(int, options.tokens.split(","))):
        contestants = [Contestant(kind, lambda kind=kind, tokens=tokens: measure(options, kind, tokens)) for kind in kinds
                       if kind != "llama" or tokens <= options.llama_tokens]
        if contestants:
            record.run(Comparison(f"{tokens} tokens", "tokens", contestants, threads=options.threads,
                                  settings={"model": options.model, "tokens": tokens}, **protocol.how(options)))
    for name, drawn in plots(record):
        pathlib.Path(f"{options.out}-{name}.svg").write_text(drawn)


if __name__ == "__main__":
    main()
