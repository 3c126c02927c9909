"""The runs of ten_kill.sh."""
import argparse
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from ten_models import MODELS, long_shards, write_config
from train_runs import ROOT, describe, digest, records_of, write_report

WAYS = {"whole samples": [], "layers computed again": ["--checkpoint-activations", "full"],
        "gradient cut every 4,096 tokens": ["--tbptt", "4096"]}


def seconds_of(command, most=None):
    """How long a command took that had to succeed, or None where it was killed after so many seconds."""
    begin = time.monotonic()
    with subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        try:
            _, errors = process.communicate(timeout=most)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            return None
    if process.returncode != 0:
        raise RuntimeError(errors.decode()[-800:])
    return time.monotonic() - begin


def left_by(out):
    """Hashes of what the newest checkpoint holds, and the losses of all steps, of which killed ones are there twice."""
    files = {path.name: digest(path.read_bytes()) for path in (out / "latest").rglob("*.safetensors")}
    return files, {record["step"]: record["loss_nats"] for record in records_of(out, "step")}


def compare(options, way, shards, model):
    common = ["train", "--quiet", "--data", shards, "--model", model, "--seq", options.tokens, "--batch", 1, "--accum", 1,
              "--steps", options.steps, "--seed", 1, "--save-every", 1, "--log-every", 1, "--mixed-precision", "no", *WAYS[way]]
    whole, killed = (options.scratch / f"{name}-{way.replace(' ', '-')}" for name in ("whole", "killed"))
    took = seconds_of([*common, "--out", whole])
    kills, command = 0, [*common, "--out", killed]
    for _ in range(options.kills):
        # Not where steps end: a share of the run, and a third of a step more.
        if seconds_of(command, took / (options.kills + 1) + took / options.steps / 3) is not None:
            break
        kills += 1
        if (killed / "latest").exists():
            command = ["train", "--quiet", "--resume", "--out", killed]
        else:
            shutil.rmtree(killed, ignore_errors=True)
    if not (killed / "complete.json").exists():
        seconds_of(command)
    files, losses = left_by(whole)
    return {"way": way, "kills": kills, "steps": len(losses), "files": len(files),
            "holds": bool(files) and kills > 0 and (files, losses) == left_by(killed)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scratch", type=pathlib.Path, required=True)
    parser.add_argument("--model", choices=list(MODELS), default="ten-micro")
    parser.add_argument("--tokens", type=int, default=32768)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("out", nargs="?", type=pathlib.Path)
    options = parser.parse_args()
    shards = long_shards(options.scratch, options.tokens, options.steps + 2)
    model = write_config(options.scratch / "ten.json", MODELS[options.model]["ten"])
    rows = []
    for way in WAYS:
        rows.append(compare(options, way, shards, model))
        print(rows[-1], file=sys.stderr, flush=True)
    lines = ["# Training the family ten, killed within its samples\n", describe(ROOT / "build/release/bin"), "",
             f"{options.model}, {options.steps} steps of one sample of {options.tokens} tokens, all of one document. Files: of "
             "the last checkpoint, the same bits as without kills.\n", "| | kills | steps | files | |", "|---|---|---|---|---|"]
    for row in rows:
        verdict = "holds" if row["holds"] else "FAILS"
        lines.append(f"| {row['way']} | {row['kills']} | {row['steps']} | {row['files']} | {verdict} |")
    write_report("\n".join(lines) + "\n", options.out)
    return 0 if all(row["holds"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
