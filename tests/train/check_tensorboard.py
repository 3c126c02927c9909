#!/usr/bin/env python3
"""Checks that TensorBoard's own reader sees in RUN/tb exactly what RUN/metrics.jsonl says.

usage: check_tensorboard.py RUN

Needs the Python package tensorboard; exits with 77 where it is missing. Prints the number of points of each tag; exits
with 1 when a tag, a step or a value differs. Values are compared as the 32-bit floats that event files hold.
"""
import json
import struct
import sys

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError:
    sys.exit(77)

STEP_TAGS = {"loss/train": "loss_nats", "lr": "lr", "grad_norm": "grad_norm",
             "throughput/tokens_per_second": "tokens_per_s", "throughput/mfu": "mfu", "data_wait_s": "data_wait_s",
             "cpu_cores": "cpu_cores", "Loss/train": "loss_nats", "Throughput/tokens_per_sec": "tokens_per_s"}
EVAL_TAGS = {"loss/eval": "loss_nats", "perplexity/eval": "perplexity", "bits_per_byte/eval": "bits_per_byte"}


def as_float(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def expected(records):
    series = {}
    for record in records:
        tags = {"step": STEP_TAGS, "eval": EVAL_TAGS}.get(record["type"], {})
        for tag, field in tags.items():
            if record[field] is None:
                continue
            series.setdefault(tag, []).append((record["step"], as_float(record[field])))
        if record["type"] == "step":
            for tag in ("memory/resident_gb", "Memory/allocated_gb"):  # the same without a GPU
                series.setdefault(tag, []).append((record["step"], as_float(record["resident_bytes"] / 1e9)))
    return series


def main():
    with open(sys.argv[1] + "/metrics.jsonl", encoding="utf-8") as file:
        wanted = expected(json.loads(line) for line in file)
    reader = EventAccumulator(sys.argv[1] + "/tb", size_guidance={"scalars": 0})
    reader.Reload()
    found = {tag: [(event.step, event.value) for event in reader.Scalars(tag)] for tag in reader.Tags()["scalars"]}
    for tag in sorted(wanted.keys() | found.keys()):
        print(tag, len(found.get(tag, [])))
        if found.get(tag) != wanted.get(tag):
            sys.exit(f"{tag}: TensorBoard reads {found.get(tag)}, the metrics say {wanted.get(tag)}")
    if not wanted:
        sys.exit("the metrics hold nothing to compare")


if __name__ == "__main__":
    main()
