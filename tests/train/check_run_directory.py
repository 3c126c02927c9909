#!/usr/bin/env python3
"""Prints what a run directory and the folder of its copies hold, clock values and processes apart.

usage: check_run_directory.py RUN [COPIES]

Two runs that took the same steps with the same options print the same, however often either was killed and resumed.
Exits with 1 where the records do not read as one complete run.
"""
import json
import os
import sys

# What a record tells of the run and not of the process that wrote it. The size of a copy depends on the clock values in its
# metadata.json.
STABLE = ("type", "step", "loss_nats", "lr", "tokens_seen", "path", "weights_sha256", "place", "copied", "exit_status",
          "reason", "problem")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def main():
    run = sys.argv[1]
    for link in ("latest", "best"):
        print(link, os.readlink(f"{run}/{link}") if os.path.islink(f"{run}/{link}") else "-")
    print("checkpoints", *sorted(os.listdir(f"{run}/checkpoints")))
    if len(sys.argv) > 2:
        print("copies", *sorted(os.listdir(sys.argv[2])))
    records = [json.loads(line) for line in read(f"{run}/metrics.jsonl").splitlines()]
    kept = [json.dumps({name: record[name] for name in STABLE if name in record})
            for record in records if record["type"] not in ("run_begin", "warning")]
    print(*sorted(kept), sep="\n")  # a background save or copy is recorded when it ends
    for name in ("complete.json", "training_metrics.json"):
        print(name, read(f"{run}/{name}"))
    reason = records[-1].get("reason", "")
    rules = {
        "the last record is no run_end": records[-1]["type"] == "run_end",
        "there is another run_end": sum(record["type"] == "run_end" for record in records) == 1,
        "a report does not tell the end": all(reason in read(f"{run}/report.{kind}") for kind in ("svg", "html")),
    }
    problems = [text for text, holds in rules.items() if not holds]
    print(*problems, sep="\n", end="", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
