#!/usr/bin/env python3
"""Checks every #include under lib/ and tools/ against lib/LAYERS.

usage: layers_test.py SOURCE_DIR

Refuses: an include of a layer that the table does not allow; a layer in the table that no include uses; torch headers
outside the layers marked "torch"; the whole-of-torch headers anywhere; torch in tools/*_options.*; the name of an objective
or optimizer in a file of lib/ that is not made for it: what differs between them is theirs to say.
"""
import pathlib
import re
import sys

TORCH = re.compile(r'^(ATen|torch|c10|caffe2)/')
TOO_WIDE = {"torch/torch.h", "torch/all.h", "torch/extension.h", "ATen/ATen.h"}

# What names one of an open set, and the files that may.
NAMES = {
    "an objective": (re.compile(r'\bk(Lm|Sft)Objective\b|--objective (lm|sft)\b|"(lm|sft)"'),
                     ("lib/objective/", "lib/documents/", "lib/formats/record_kind.h", "lib/spec/objective_names.h",
                      "lib/spec/built_in_objectives.cc")),
    "an optimizer": (re.compile(r'\bAdamW(Description|Kind)?\(|\bclass AdamW\b|--optimizer adamw|"adamw"|optim/adamw\.h'),
                     ("lib/optim/", "lib/spec/optimizer_options.h", "lib/spec/built_in_optimizers")),
}


def read_table(path):
    table = {}
    for line in path.read_text().splitlines():
        match = re.match(r'^([a-z]+)\s*(torch)?\s*:(.*)$', line)
        if match:
            table[match[1]] = (bool(match[2]), set(match[3].split()))
    return table


def problems_of(source_dir):
    table = read_table(source_dir / "lib/LAYERS")
    files = [p for top in ("lib", "tools") for p in sorted((source_dir / top).rglob("*")) if p.suffix in (".h", ".cc", ".cu", ".cuh")]
    checked = 0
    used = {layer: set() for layer in table}
    for path in files:
        relative = path.relative_to(source_dir)
        layer = relative.parts[1] if relative.parts[0] == "lib" else None
        if layer is not None and layer not in table:
            yield f"{relative}: layer '{layer}' is not in lib/LAYERS"
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for what, (name, allowed) in NAMES.items():
                if layer is not None and name.search(line) and not str(relative).startswith(allowed):
                    yield f"{relative}:{number}: names {what}; the registry's entries say what differs between them"
            match = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
            if not match:
                continue
            checked += 1
            header, where = match[1], f"{relative}:{number}"
            if header in TOO_WIDE:
                yield f"{where}: {header} takes over 10 s a file; include the narrow header"
            if TORCH.match(header):
                if layer is None and "_options" in path.name:
                    yield f"{where}: options files must stay free of torch"
                elif layer is not None and not table[layer][0]:
                    yield f"{where}: layer {layer} must not include torch"
            if header.startswith("lib/") and layer is not None and header != "lib/base/version.h":
                other = header.split("/")[1]
                used[layer].add(other)
                if other != layer and other not in table[layer][1]:
                    yield f"{where}: layer {layer} must not include layer {other}"
    for layer, (_, allowed) in table.items():
        for other in sorted(allowed - used[layer]):
            yield f"lib/LAYERS: layer {layer} may include layer {other}, and nothing does"
    if checked == 0:
        yield "no #include was checked: wrong folder?"


def main():
    problems = list(problems_of(pathlib.Path(sys.argv[1])))
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
