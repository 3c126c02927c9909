#!/usr/bin/env python3
"""Checks the metadata.json of checkpoints against the committed JSON Schema.

usage: check_metadata.py SCHEMA.json METADATA.json...
       check_metadata.py --stable METADATA.json     prints it without what it lists as volatile
"""
import json
import pathlib
import sys

from check_metrics import closed, problems


def stable(metadata):
    for name in metadata.pop("volatile"):
        *parents, last = name.split(".")
        place = metadata
        for parent in parents:
            place = place[parent]
        del place[last]  # fails for a field that is not there
    return metadata


def main():
    if sys.argv[1] == "--stable":
        print(json.dumps(stable(json.loads(pathlib.Path(sys.argv[2]).read_text())), indent=1))
        return 0
    schema = closed(json.loads(pathlib.Path(sys.argv[1]).read_text()))
    found = [problem for path in sys.argv[2:]
             for problem in problems(json.loads(pathlib.Path(path).read_text()), schema["$defs"]["checkpoint"], path)]
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


sys.exit(main())
