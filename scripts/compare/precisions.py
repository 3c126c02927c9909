"""The runs and the report of precisions.sh, by the protocol of protocol.py.

`train` starts anew in each round, and its first step is not timed. Work is tokens.
"""
import argparse
import json
import pathlib
import shutil

import protocol
from protocol import Comparison, Contestant
from train_runs import ROOT, figures_of, records_of, run

GOAL = 1
UNTIMED_STEPS = 1
# Ours first: what is compared with fp32 is bf16.
PRECISIONS = {"bf16": "bf16", "fp32": "no"}
# Hidden and intermediate size, layers and heads; tokens of a sample, samples and timed steps.
MODELS = {"6x384": (384, 1024, 6, 6, 512, 2, 3), "12x768": (768, 2048, 12, 12, 256, 1, 3), "2x128": (128, 512, 2, 2, 256, 16, 7)}


def config_of(name):
    hidden, inner, layers, heads, *_ = MODELS[name]
    return {"model_type": "llama", "vocab_size": 32000, "hidden_size": hidden, "intermediate_size": inner,
            "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": heads,
            "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "rope_theta": 10000, "tie_word_embeddings": True,
            "hidden_act": "silu"}


def make_shards(scratch):
    text = scratch / "text.txt"
    text.write_text("".join(f"{number} is a number, and the next line has the one that comes after it\n"
                            for number in range(1, 60001)))
    run("pretokenize", "-q", "--tokenizer", ROOT / "examples/data/mistral-v1.model", text, "-o", scratch / "text.tokens")
    run("pack", "-q", "--chunk", 2048, scratch / "text.tokens", "-o", scratch / "shards")


def sample_of(options, name, precision):
    """The Sample of the timed steps of a run."""
    *_, sequence, batch, steps = MODELS[name]
    config, out = options.scratch / f"{name}.json", options.scratch / "run"
    config.write_text(json.dumps(config_of(name)))
    shutil.rmtree(out, ignore_errors=True)
    run("train", "-q", "--progress", "never", "--data", options.scratch / "shards", "--model", config, "--seq", sequence,
        "--batch", batch, "--accum", 1, "--steps", UNTIMED_STEPS + (options.steps or steps), "--threads", options.threads,
        "--device", "cpu", "--mixed-precision", PRECISIONS[precision], "--save-every", 0, "--save-model-only", "--log-every", 1,
        "--out", out)
    return protocol.timed_steps(figures_of(records_of(out)), UNTIMED_STEPS)


def comparison_of(options, name, sample=sample_of, machine=None):
    contestants = [Contestant(f"train, {precision}", lambda precision=precision: sample(options, name, precision))
                   for precision in PRECISIONS]
    return Comparison(f"{name}, bf16 beside fp32, threads {options.threads}", "tokens", contestants, threads=options.threads,
                      settings={"steps": options.steps or MODELS[name][-1]}, machine=machine, **protocol.how(options))


def extra_text(record):
    """Markdown of what follows for the goal."""
    lines = ["", f"## bf16 over fp32 (goal {GOAL})", "", "| comparison | ratio | verdict |", "|---|---|---|"]
    for state in record.states:
        if told := protocol.Results(state).statement(goal=GOAL):
            lines.append(f"| {state['name']} | {protocol.ratio_text(told)} | {told['verdict']} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scratch", type=pathlib.Path, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--models", type=lambda text: text.split(","), default=list(MODELS))
    protocol.add_options(parser)
    parser.add_argument("out")
    options = parser.parse_args()
    if unknown := set(options.models) - set(MODELS):
        parser.error(f"--models: unknown {', '.join(sorted(unknown))}: one of {', '.join(MODELS)}")
    if options.steps is not None and options.steps < 1:
        parser.error("--steps must be at least 1")
    make_shards(options.scratch)
    record = protocol.Record(options.out, "bf16 beside fp32", "scripts/compare/precisions.sh")
    record.after = extra_text
    for name in options.models:
        record.run(comparison_of(options, name))


if __name__ == "__main__":
    main()
