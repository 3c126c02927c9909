#!/usr/bin/env python3
"""What examples/ten and scripts/svg_lines.py make of known numbers.

usage: ten_example_test.py SOURCE_DIR
"""
import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

source = pathlib.Path(sys.argv[1]).resolve()


def run(script, *arguments):
    return subprocess.run([sys.executable, source / script, *map(str, arguments)], check=True, text=True,
                          stdout=subprocess.PIPE).stdout


def logits_file(path, spans, width, favour):
    """Logits that give `favour` to the token that comes and 0 to all others."""
    tokens = [i % width for i in range(sum(spans))]
    logits = [favour if token == following else 0.0 for following in tokens[1:] + [0] for token in range(width)]
    starts = [sum(spans[:i]) for i in range(len(spans) + 1)]
    data, header = b"", {}
    for name, dtype, shape, packed in (("tokens", "I64", [len(tokens)], struct.pack(f"<{len(tokens)}q", *tokens)),
                                       ("logits", "F32", [len(tokens), width], struct.pack(f"<{len(logits)}f", *logits)),
                                       ("span_starts", "I32", [len(starts)], struct.pack(f"<{len(starts)}i", *starts))):
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)

    # A number is asked for behind as many points as --lag says, and every gold answer is the number of its prompt.
    run("examples/ten/recall.py", folder, "--lag", 37, "--records", 20, "--questions", 100)
    for line in (folder / "train.jsonl").read_text().splitlines():
        record = json.loads(line)
        assert record["prompt"] == record["response"] + "." * 37 + "?", record
    gold = [json.loads(line) for line in (folder / "gold.jsonl").read_text().splitlines()]
    assert len({one["prompt"] for one in gold}) == 100 and all(int(one["prompt"][:2]) == one["gold"] for one in gold), gold

    # Each position's loss is that of its softmax, and positions begin again with a span.
    logits_file(folder / "logits", [9, 5], 4, 2.0)
    figure = json.loads(run("examples/ten/by_position.py", f"model={folder / 'logits'}"))
    expected = math.log(math.exp(2.0) + 3) - 2
    points = figure["lines"]["model"]
    assert [point[0] for point in points] == [1.5, 3.0, 6.0, 12.0], points  # positions 0; 1, 2; 3 to 6; 7
    assert all(abs(loss - expected) < 1e-6 for _, loss in points), points

    # A plot is well-formed and has a line and a name for each series.
    figure["lines"] = {"<a>": [[1, 2], [10, 3]], "b": [[2, 5], [8, 4], [9, None]]}
    (folder / "figure.json").write_text(json.dumps(figure))
    texts = [element.text for element in ElementTree.fromstring(run("scripts/svg_lines.py", folder / "figure.json")).iter()]
    assert {"<a>", "b", figure["title"]} <= set(texts), texts
