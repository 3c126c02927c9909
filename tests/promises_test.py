#!/usr/bin/env python3
"""Checks tests/promises/systems.tsv: what shows each numbered line that the suite promises of the systems it reproduces.

usage: promises_test.py SOURCE_DIR

A row is an id (a letter for the system: A GRIT, B ReFocused-AI, C rejection fine-tuning, D LoRA trainer, E TEN; and the number
of the line), the promise, its status, the evidence and the gap, with tabs between them. The evidence is names of CTest as
tests/golden/test_names.txt has them, and files of the sources, with blanks between them. The statuses:

met      the evidence shows all of it
partly   the gap says what is missing
missing  nothing shows it; the gap says what there is instead
gpu      only what the gap says is left, which takes a GPU
open     the gap names the open work that brings it

Refuses: ids that are unknown, repeated, out of order or left out; other statuses; a test or a file that is not there; "met" without
evidence or with a gap; any other status without a gap. Prints the number of rows of each status.
"""
import collections
import itertools
import pathlib
import sys

COLUMNS = ["id", "promise", "status", "evidence", "gap"]
STATUSES = ["met", "partly", "missing", "gpu", "open"]
MOST_WORDS = 12
LINES = {"A": 57, "B": 46, "C": 31, "D": 30, "E": 34}


def problems(rows, tests, source):
    expected = [f"{system}{line}" for system, lines in LINES.items() for line in range(1, lines + 1)]
    names = [row.split("\t")[0] for row in rows]
    for number, (name, wanted) in enumerate(itertools.zip_longest(names, expected), 2):
        if name != wanted:
            yield f"line {number}: {name or 'nothing'} stands where {wanted or 'nothing'} belongs"
            break
    for row in rows:
        fields = row.split("\t")
        where = fields[0]
        if len(fields) != len(COLUMNS):
            yield f"{where}: has {len(fields)} columns, not {len(COLUMNS)}"
            continue
        promise, status, evidence, gap = fields[1:]
        if not 1 <= len(promise.split()) <= MOST_WORDS:
            yield f"{where}: the promise is empty or longer than {MOST_WORDS} words"
        if status not in STATUSES:
            yield f"{where}: {status!r} is none of {', '.join(STATUSES)}"
        if status == "met" and (not evidence or gap):
            yield f"{where}: what is met has evidence and no gap"
        if status != "met" and not gap:
            yield f"{where}: says nothing of what is left"
        for item in evidence.split(" ") if evidence else []:
            if item not in tests and not (item and (source / item).is_file()):
                yield f"{where}: {item!r} is no test and no file"


def main():
    source = pathlib.Path(sys.argv[1])
    tests = set((source / "tests/golden/test_names.txt").read_text(encoding="utf-8").splitlines())
    head, *rows = (source / "tests/promises/systems.tsv").read_text(encoding="utf-8").splitlines()
    found = list(problems(rows, tests, source))
    if head.split("\t") != COLUMNS:
        found.insert(0, f"the columns are not {', '.join(COLUMNS)}")
    counts = collections.Counter(row.split("\t")[2] for row in rows if row.count("\t") > 1)
    print(", ".join(f"{counts[status]} {status}" for status in STATUSES), f"of {len(rows)}")
    for problem in found:
        print(f"tests/promises/systems.tsv: {problem}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
