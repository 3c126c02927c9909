#!/usr/bin/env python3
"""Tells the shape of the code as Markdown: lines a layer, includes between layers, the largest files, classes, functions.

usage: code_shape.py [SOURCE_DIR]

SOURCE_DIR is a checkout, this one without it; of another commit: git worktree add FOLDER COMMIT. Sizes are those of
scripts/cpp_scan.py: lines from head to closing brace, a class with its member functions of all files.
"""
import collections
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import cpp_scan  # noqa: E402

MANY_LINES_OF_FILE, LARGEST = 400, 15
INCLUDE = re.compile(r'^\s*#\s*include\s*"lib/(\w+)/', re.MULTILINE)


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|" + "|".join(" --- " if i == 0 else " ---: " for i in range(len(heads))) + "|"]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]) + "\n"


def layers_in_order(source_dir):
    return re.findall(r"^([a-z]+)\s*(?:torch)?\s*:", (source_dir / "lib/LAYERS").read_text(), re.MULTILINE)


def layer_table(source_dir, texts):
    files, lines, edges = collections.Counter(), collections.Counter(), collections.Counter()
    for path, text in texts.items():
        layer = cpp_scan.place_of(path).removeprefix("lib/")
        files[layer] += 1
        lines[layer] += text.count("\n")
        for other in INCLUDE.findall(text):
            if other != layer:
                edges[layer, other] += 1
    rows = []
    for layer in [*layers_in_order(source_dir), "tools"]:
        below = sorted(((n, other) for (user, other), n in edges.items() if user == layer), key=lambda e: (-e[0], e[1]))
        rows.append((layer, files[layer], lines[layer], ", ".join(f"{other} {n}" for n, other in below)))
    rows.append(("all", sum(files.values()), sum(lines.values()), f"{len(edges)} edges, {sum(edges.values())} includes"))
    return table(("layer", "files", "lines", "includes of other layers"), rows)


def largest(sizes, kind, least):
    found = sorted(((size, entry) for entry, size in sizes.items() if entry.kind == kind), key=lambda e: (-e[0], e[1]))
    return [(size, entry) for at, (size, entry) in enumerate(found) if size > least or at < LARGEST]


def main():
    source_dir = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    texts = {path.relative_to(source_dir): path.read_text() for path in cpp_scan.sources_of(source_dir)}
    scans = cpp_scan.scan_folder(source_dir)
    sizes = cpp_scan.sizes_of(scans)
    long_files = sorted(((text.count("\n"), str(path)) for path, text in texts.items()), reverse=True)
    functions = sum(len(scan.functions) for _, scan in scans)
    classes = sum(len(scan.classes) for _, scan in scans)
    print(f"{len(texts)} files, {functions} functions, {classes} classes.\n")
    print("## Layers\n\n" + layer_table(source_dir, texts))
    long_files = [(path, lines) for lines, path in long_files if lines > MANY_LINES_OF_FILE]
    print(f"## Files of more than {MANY_LINES_OF_FILE} lines: {len(long_files)}\n\n" + table(("file", "lines"), long_files))
    members = {(entry.place, entry.name): size for entry, size in sizes.items() if entry.kind == "members"}
    print("## Largest classes, with their member functions\n\n" + table(
        ("class", "layer", "lines", "data members"),
        [(f"`{entry.name}`", entry.place, size, members.get((entry.place, entry.name), "no functions"))
         for size, entry in largest(sizes, "class", 400)]))
    print("## Classes with functions and the most data members\n\n" + table(
        ("class", "layer", "data members"), [(f"`{entry.name}`", entry.place, size) for size, entry in largest(sizes, "members", 20)]))
    print("## Largest functions, constant tables left out\n\n" + table(
        ("function", "layer", "lines"), [(f"`{entry.name}`", entry.place, size) for size, entry in largest(sizes, "function", 80)]))


if __name__ == "__main__":
    main()
