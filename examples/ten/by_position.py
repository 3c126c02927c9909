#!/usr/bin/env python3
"""The loss of a model by the position in its text, from files that `evaluate --logits` wrote.

usage: by_position.py NAME=FILE[,FILE...]... > FIGURE.json     (see scripts/svg_lines.py)

Each file holds one text. Positions are grouped by powers of 2; of a group stands the mean of the losses of all texts, in
nats, at its middle.
"""
import array
import json
import math
import sys


def read(path):
    """(tokens, starts of spans, logits as one array, width of a row)"""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = file.read()

    def numbers(name, kind):
        begin, end = header[name]["data_offsets"]
        return array.array(kind, data[begin:end])

    kinds = {"I32": "i", "I64": "q", "F32": "f"}
    tokens, starts, logits = (numbers(name, kinds[header[name]["dtype"]]) for name in ("tokens", "span_starts", "logits"))
    return tokens, starts, logits, header["logits"]["shape"][1]


def losses(path):
    """Of each token but a span's first: (position of what predicts it, nats)."""
    tokens, starts, logits, width = read(path)
    begins = set(starts)
    first = 0
    for at in range(1, len(tokens)):
        if at in begins:
            first = at
            continue
        row = logits[(at - 1) * width:at * width]
        most = max(row)
        yield at - 1 - first, most + math.log(sum(math.exp(value - most) for value in row)) - row[tokens[at]]


def by_position(paths):
    """[[middle of a group of positions, mean loss], ...]"""
    groups = {}
    for path in paths:
        for position, nats in losses(path):
            total = groups.setdefault(int(math.log2(position + 1)), [0.0, 0])
            total[0] += nats
            total[1] += 1
    return [[1.5 * 2 ** group, total / count] for group, (total, count) in sorted(groups.items())]


def main():
    lines = {}
    for argument in sys.argv[1:]:
        name, _, paths = argument.partition("=")
        lines[name] = by_position(paths.split(","))
    print(json.dumps({"title": "Loss by position", "x_label": "bytes read", "y_label": "nats a byte", "log_x": True,
                      "lines": lines}))


if __name__ == "__main__":
    main()
