#!/usr/bin/env python3
"""Checks JSON objects, one after the other on standard input, against a JSON Schema of gpu-probe.

usage: check_probe.py SCHEMA.json < OBJECTS

The checker is that of metrics.jsonl; where Python has the package jsonschema, it judges too. Exits with 1 and the
problems when there are any, or when there was no object.
"""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "train"))
from check_metrics import problems  # noqa: E402


def main():
    schema = json.loads(pathlib.Path(sys.argv[1]).read_text())
    rules = {key: value for key, value in schema.items() if key not in ("$schema", "title")}
    text, decoder, found, count = sys.stdin.read().strip(), json.JSONDecoder(), [], 0
    while text:
        value, end = decoder.raw_decode(text)
        text = text[end:].strip()
        count += 1
        found += problems(value, rules, f"object {count}")
        try:
            import jsonschema
        except ImportError:
            continue
        found += [f"object {count}: {error.message}" for error in jsonschema.Draft202012Validator(schema).iter_errors(value)]
    for problem in found:
        print(problem)
    sys.exit(1 if found or count == 0 else 0)


if __name__ == "__main__":
    main()
