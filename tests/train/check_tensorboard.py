#!/usr/bin/env python3
"""Checks that RUN/tb holds exactly what RUN/metrics.jsonl says, as TensorBoard's own reader sees it.

usage: check_tensorboard.py RUN [--plain]

Needs the Python package tensorboard; exits with 77 where it is missing. With --plain the files are read here instead, by what
is written of their format: framed records, whose checksums are checked, of protocol buffers. Prints the number of points of
each tag; exits with 1 when a tag, a step or a value differs. Values are compared as the 32-bit floats that event files hold.
"""
import json
import pathlib
import struct
import sys

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


def tensorboards_reader():
    try:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    except ImportError:
        sys.exit(77)

    def read(folder):
        reader = EventAccumulator(folder, size_guidance={"scalars": 0})
        reader.Reload()
        return {tag: [(event.step, event.value) for event in reader.Scalars(tag)] for tag in reader.Tags()["scalars"]}
    return read


def crc32c_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


CRC32C = crc32c_table()


def masked_crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC32C[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(path):
    """The contents of the records of a TFRecord file, of which none may be torn or damaged."""
    data, at = path.read_bytes(), 0
    while at < len(data):
        head = data[at:at + 12]
        size, = struct.unpack("<Q", head[:8])
        content, tail = data[at + 12:at + 12 + size], data[at + 12 + size:at + 16 + size]
        for part, stored in ((head[:8], head[8:]), (content, tail)):
            if struct.pack("<I", masked_crc32c(part)) != stored:
                sys.exit(f"{path}: the record at byte {at} is torn or damaged")
        yield content
        at += 16 + size


def fields(message):
    """(number, value) of the fields of a protocol buffer: of a varint its number, else bytes."""
    at = 0

    def varint():
        nonlocal at
        number = shift = 0
        while True:
            byte = message[at]
            at += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        size = {1: 8, 5: 4}[key & 7] if key & 7 != 2 else varint()
        yield key >> 3, message[at:at + size]
        at += size


def plain(folder):
    """{tag: [(step, value)]}, the files in the order of their names."""
    step_field, summary_field, value_field, tag_field, simple_value_field = 2, 5, 1, 1, 2
    series = {}
    for path in sorted(pathlib.Path(folder).glob("*tfevents*")):
        for record in records(path):
            event = dict(fields(record))
            for number, value in fields(event.get(summary_field, b"")):
                scalar = dict(fields(value)) if number == value_field else {}
                if simple_value_field in scalar:
                    point = event.get(step_field, 0), struct.unpack("<f", scalar[simple_value_field])[0]
                    series.setdefault(scalar[tag_field].decode(), []).append(point)
    return series


def main():
    read = plain if sys.argv[2:] == ["--plain"] else tensorboards_reader()
    with open(sys.argv[1] + "/metrics.jsonl", encoding="utf-8") as file:
        wanted = expected(json.loads(line) for line in file)
    found = read(sys.argv[1] + "/tb")
    for tag in sorted(wanted.keys() | found.keys()):
        print(tag, len(found.get(tag, [])))
        if found.get(tag) != wanted.get(tag):
            sys.exit(f"{tag}: the event files say {found.get(tag)}, the metrics {wanted.get(tag)}")
    if not wanted:
        sys.exit("the metrics hold nothing to compare")


if __name__ == "__main__":
    main()
