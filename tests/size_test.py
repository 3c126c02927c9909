#!/usr/bin/env python3
"""Checks that functions and classes of lib/ and tools/ stay of a size that one can take in.

usage: size_test.py [--update] SOURCE_DIR

A function has at most 80 lines, from its head to its closing brace; constants that it defines do not count. A class has
at most 400 lines, its definition and its member functions of all files together, and 20 data members; one without
functions of its own may have more. tests/size_exceptions.txt lists what was larger before there was this check, each
with its size: none may grow, none may be added, and what has become small enough is struck off. The layers of RELAID
have no exceptions. --update strikes off, and writes smaller sizes where there are any; it adds nothing.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))
import cpp_scan  # noqa: E402

MOST_LINES_OF_FUNCTION = 80
MOST_LINES_OF_CLASS = 400
MOST_DATA_MEMBERS = 20
RELAID = ("checkpoint", "device", "dist", "documents", "eval", "loading", "machine", "memory", "model", "nn", "objective",
          "optim", "packing", "probe", "run", "score", "spec", "train")
LIMITS = {"function": MOST_LINES_OF_FUNCTION, "class": MOST_LINES_OF_CLASS, "members": MOST_DATA_MEMBERS}
LIST = "tests/size_exceptions.txt"
# An empty scan would find nothing too large. The code has some 3,300 functions and 680 classes.
LEAST_FUNCTIONS, LEAST_CLASSES = 2000, 400


def read_list(text):
    exceptions = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        words = line.split()
        if len(words) < 4 or words[0] not in LIMITS or not words[-1].isdigit():
            raise ValueError(f"{LIST}:{number}: not KIND PLACE NAME SIZE: {line}")
        exceptions[cpp_scan.Entry(words[0], words[1], " ".join(words[2:-1]))] = int(words[-1])
    return exceptions


def problems_of(sizes, exceptions):
    for entry, size in sorted(sizes.items()):
        limit = LIMITS[entry.kind]
        allowed = exceptions.get(entry)
        what = f"{entry.kind} {entry.place} {entry.name}"
        if allowed is None and size > limit:
            yield f"{what}: {size}, more than {limit}: divide it"
        elif allowed is not None and size > allowed:
            yield f"{what}: has grown from {allowed} to {size}; {LIST} may only shrink"
        elif allowed is not None and size <= limit:
            yield f"{what}: {size} is small enough now: strike it off {LIST} (size_test.py --update)"
    for entry in sorted(exceptions):
        what = f"{entry.kind} {entry.place} {entry.name}"
        if entry not in sizes:
            yield f"{what}: is no more: strike it off {LIST} (size_test.py --update)"
        if entry.place.removeprefix("lib/") in RELAID:
            yield f"{what}: {entry.place} has no exceptions"


def updated_list(text, sizes, exceptions):
    kept = [line for line in text.splitlines() if not line or line.startswith("#")]
    for entry, allowed in sorted(exceptions.items()):
        size = min(allowed, sizes.get(entry, 0))
        if size > LIMITS[entry.kind]:
            kept.append(f"{entry.kind} {entry.place} {entry.name} {size}")
    return "\n".join(kept) + "\n"


def main():
    update = "--update" in sys.argv
    source_dir = pathlib.Path([argument for argument in sys.argv[1:] if argument != "--update"][0])
    scans = cpp_scan.scan_folder(source_dir)
    sizes = cpp_scan.sizes_of(scans)
    text = (source_dir / LIST).read_text()
    exceptions = read_list(text)
    if update:
        text = updated_list(text, sizes, exceptions)
        (source_dir / LIST).write_text(text)
        exceptions = read_list(text)
    problems = list(problems_of(sizes, exceptions))
    functions = sum(len(scan.functions) for _, scan in scans)
    classes = sum(len(scan.classes) for _, scan in scans)
    if functions < LEAST_FUNCTIONS or classes < LEAST_CLASSES:
        problems.append(f"only {functions} functions and {classes} classes were seen: wrong folder, or a reader gone blind?")
    print("\n".join(problems) if problems else f"{functions} functions and {classes} classes in {len(scans)} files")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
