"""The runs of ten_learning.sh."""
import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

from ten_models import MODELS, ten, write_config
from train_runs import ROOT, TEXT, describe, records_of, run

sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "examples/ten")]
import by_position  # noqa: E402
import svg_lines  # noqa: E402

HELD_OUT_TEXTS = 4
TASK_TOKENS = 16384
SHORT_TOKENS, STEP_TOKENS = 2048, 32768
# Where training starts. lru draws squares of moduli between the bounds, of which hardly one in 64 is above 0.999; ring has
# only such: what is 10,000 bytes back still has over a third of its weight in some of them.
STARTS = {"lru": {"init": "lru", "max_modulus": 0.9999}, "compat": {"init": "compat"},
          "ring": {"init": "lru", "min_modulus": 0.999, "max_modulus": 0.9999},
          "far": {"init": "lru", "min_modulus": 0.9998, "max_modulus": 0.99999}}


def train(out, *flags):
    """Trains, or goes on with a training that was stopped, or leaves a complete one as it is."""
    if (out / "complete.json").exists():
        return
    run("train", "--quiet", "--resume", "--accum", 1, "--seed", 1, "--save-every", 5, "--keep", 1, "--log-every", 1,
        "--mixed-precision", "no", *flags, "--out", out)


def steps_of(out):
    return [record for record in records_of(out) if record["type"] == "step"]


def cpu_of(steps):
    """Seconds of processors, by the share of them that each step kept busy."""
    return sum(step["cpu_cores"] * step["step_time_s"] for step in steps)


def recall_of(options, work, lag, start):
    """One model on one lag: evaluate's scores, and how it was trained."""
    task = work / f"recall-{lag}"
    if not (task / "shards").exists():
        shutil.rmtree(task, ignore_errors=True)
        run(sys.executable, ROOT / "examples/ten/recall.py", task, "--lag", lag)
        run("pretokenize", "-q", "--tokenizer", "bytes", "--records", "sft", "--template", "qa-space", task / "train.jsonl",
            "-o", task / "train.tokens")
        run("pack", "-q", "--chunk", TASK_TOKENS, task / "train.tokens", "-o", task / "shards")
    folder = task / f"{start}-{options.shape}"
    score = folder / "score.json"
    if not score.exists():
        folder.mkdir(exist_ok=True)
        config = write_config(folder / "model.json", ten(*map(int, options.shape.split(",")), **STARTS[start]))
        if not (folder / "run/latest").exists():
            # The schedule has no end: training stops when its time is up.
            run("train", "--quiet", "--resume", "--data", task / "shards", "--model", config, "--seq", TASK_TOKENS, "--batch", 1,
                "--accum", 1, "--steps", 1_000_000, "--schedule", "constant", "--warmup", 20, "--lr", options.lr, "--seed", 1,
                "--save-every", 0, "--log-every", 10, "--mixed-precision", "no", "--max-minutes", options.minutes, "--out",
                folder / "run")
        answers = run("generate", "--quiet", "--checkpoint", folder / "run", "--template", "qa-space", "--input",
                      task / "prompts.jsonl", "--batch", 8, "--max-tokens", 4, "--temperature", 0)
        (folder / "answers.jsonl").write_text(answers)
        score.write_text(run("evaluate", "--quiet", "--metric", "answers", "--samples", folder / "answers.jsonl", "--gold",
                             task / "gold.jsonl"))
    steps = steps_of(folder / "run")
    return {**json.loads(score.read_text()), "lag": lag, "start": start, "steps": steps[-1]["step"],
            "tokens_seen": steps[-1]["tokens_seen"], "loss_nats": steps[-1]["loss_nats"],
            "parameters": records_of(folder / "run", "run_begin")[0]["parameters"]}


def recall(options, work):
    starts = options.starts.split(",")
    scores = [recall_of(options, work, lag, start) for lag in map(int, options.lags.split(",")) for start in starts]
    lines = ["## Recall\n", f"A model of {scores[0]['parameters'] / 1e6:.2f}M parameters (width, layers, eigenstates: "
             f"{options.shape}) for each line, {options.minutes:g} minutes of training at {options.lr}; two digits, so a guess is right in 1 %. "
             "Start lru: moduli from 0.9 to 0.9999; ring: from 0.999 to 0.9999; far: from 0.9998 to 0.99999; compat: at most 0.5.\n",
             "| lag | start | steps | bytes | last loss | recalled | 95 % interval |", "|---|---|---|---|---|---|---|"]
    plotted = {start: [] for start in starts}
    for score in scores:
        low, high = score["exact_accuracy_interval"]
        plotted[score["start"]].append([score["lag"], score["exact_accuracy"]])
        lines.append(f"| {score['lag']} | {score['start']} | {score['steps']} | {score['tokens_seen']} | "
                     f"{score['loss_nats']:.4f} | {score['exact_accuracy']:.0%} | {low:.0%} to {high:.0%} |")
    pathlib.Path(f"{options.out}-recall.svg").write_text(svg_lines.svg(
        {"title": "Numbers recalled after a gap", "x_label": "bytes between", "y_label": "share", "log_x": True,
         "from_zero": True, "lines": plotted}))
    return "\n".join(lines) + "\n"


def long_text(options):
    """(what it is, its bytes)"""
    if options.text:
        return options.text.name, options.text.read_bytes()
    if shutil.which("bible"):
        bible = subprocess.run(["bible", "-f", "gen1:1-rev22:21"], capture_output=True, check=False).stdout
        if len(bible) > 1_000_000:
            return "the King James Bible and Shakespeare", bible + TEXT.read_bytes()
    return "Shakespeare", TEXT.read_bytes()


def position_shards(options, work):
    """Packs the text, but for evenly spread parts of the length of a sample, and each of those by itself."""
    name, text = long_text(options)
    if (work / "train").exists():  # the last
        return name
    space = len(text) // HELD_OUT_TEXTS
    if space < 3 * options.tokens:
        raise SystemExit(f"{name} has {len(text)} bytes, too few for samples of {options.tokens}")
    kept = b""
    for number in range(HELD_OUT_TEXTS):
        part = text[number * space:(number + 1) * space]
        held_out = options.tokens - 2  # with marks at its ends one chunk
        pack(options, work, f"held-out-{number}", part[-held_out:])
        kept += part[:-held_out]
    pack(options, work, "train", kept)
    return name


def pack(options, work, name, text):
    (work / f"{name}.txt").write_bytes(text)
    run("pretokenize", "-q", "--tokenizer", "bytes", "--format", "file", work / f"{name}.txt", "-o", work / f"{name}.tokens")
    run("pack", "-q", "--chunk", options.tokens, "--mode", "concat", work / f"{name}.tokens", "-o", work / name)


def positions(options, work):
    work = work / f"positions-{options.tokens}"
    work.mkdir(exist_ok=True)
    name = position_shards(options, work)
    curves, lines = {}, ["## Loss by position\n", f"{name}. {options.short_steps} steps of {STEP_TOKENS} bytes in samples of "
                         f"{SHORT_TOKENS}, then {options.steps} of one sample of {options.tokens} bytes, both one-cycle; "
                         f"{HELD_OUT_TEXTS} texts of {options.tokens} bytes held out. Nats a byte.\n"]
    for kind, title in (("ten", "TEN"), ("llama", "Llama")):
        config = write_config(work / f"{kind}.json", MODELS["ten-micro"][kind])
        short = work / f"{kind}-short-{options.short_steps}"
        out = work / f"{kind}-{options.short_steps}-{options.steps}"
        of_both = ("--data", work / "train", "--schedule", "one-cycle", "--clip", 1)
        train(short, *of_both, "--model", config, "--seq", SHORT_TOKENS, "--batch", STEP_TOKENS // SHORT_TOKENS, "--steps",
              options.short_steps, "--lr", "3e-3")
        train(out, *of_both, "--init", short, "--seq", options.tokens, "--batch", 1, "--steps", options.steps, "--lr", "1e-3")
        files = []
        for number in range(HELD_OUT_TEXTS):
            files.append(out / f"logits-{number}.safetensors")
            run("evaluate", "--quiet", "--checkpoint", out, "--data", work / f"held-out-{number}", "--seq", options.tokens,
                "--batch", 1, "--logits", files[-1])
        curves[title] = by_position.by_position(files)
        for file in files:
            file.unlink()
        for folder in (short, out):
            steps = steps_of(folder)
            lines.append(f"- {title}, {'short' if folder == short else 'long'} samples: "
                         f"{records_of(folder, 'run_begin')[0]['parameters']} parameters, "
                         f"{sum(step['step_time_s'] for step in steps) / 60:.1f} minutes "
                         f"({cpu_of(steps) / 60:.1f} of processors), "
                         f"{sum(step['tokens'] for step in steps)} bytes, last loss {steps[-1]['loss_nats']:.4f}, peak "
                         f"{max(step['max_memory_bytes'] for step in steps) / 1e6:.0f} MB")
    lines += ["", "| bytes read | " + " | ".join(curves) + " | lower |", "|---|" + "---|" * (len(curves) + 1)]
    for group, of_group in enumerate(zip(*curves.values())):
        losses = [point[1] for point in of_group]
        lower = list(curves)[losses.index(min(losses))]
        lines.append(f"| {2 ** group - 1} to {2 ** (group + 1) - 2} | " + " | ".join(f"{loss:.4f}" for loss in losses) +
                     f" | {lower} |")
    pathlib.Path(f"{options.out}-positions.svg").write_text(svg_lines.svg(
        {"title": "Loss by position in held-out texts", "x_label": "bytes read", "y_label": "nats a byte", "log_x": True,
         "lines": curves}))
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scratch", type=pathlib.Path, required=True)
    parser.add_argument("--parts", default="recall,positions")
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--lags", default="100,1000,10000")
    parser.add_argument("--starts", default="lru,compat,ring")
    parser.add_argument("--lr", default="2e-3")
    parser.add_argument("--shape", default="192,4,64")
    parser.add_argument("--short-steps", type=int, default=300)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--tokens", type=int, default=32768)
    parser.add_argument("--text", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("out")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # run() then ends its tool, too
    parts = {"recall": recall, "positions": positions}
    if unknown := set(options.parts.split(",")) - set(parts):
        parser.error(f"unknown {', '.join(unknown)}: one of {', '.join(parts)}")
    if unknown := set(options.starts.split(",")) - set(STARTS):
        parser.error(f"unknown {', '.join(unknown)}: one of {', '.join(STARTS)}")
    load = os.getloadavg()[0]
    work = options.work or options.scratch
    work.mkdir(parents=True, exist_ok=True)
    for part in options.parts.split(","):
        (work / f"{part}.md").write_text(parts[part](options, work))
    pathlib.Path(f"{options.out}.md").write_text(
        f"# What the family ten learns\n\n{describe(ROOT / 'build/release/bin')} Load {load:.1f} at first, "
        f"{os.getloadavg()[0]:.1f} at last.\n\n" +
        "\n".join((work / f"{part}.md").read_text() for part in parts if (work / f"{part}.md").exists()))


if __name__ == "__main__":
    main()
