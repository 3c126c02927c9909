#!/usr/bin/env python3
"""Checks a metrics.jsonl against the committed JSON Schema, and that it reads as one run.

usage: check_metrics.py SCHEMA.json METRICS.jsonl

The schema allows fields that it does not describe, which later releases may add; here they are a problem. Knows the
part of JSON Schema that the schema uses, and refuses a schema that uses more. Prints the record types that it saw, one
a line with their counts; exits with 1 at the first problem.
"""
import collections
import json
import re
import sys

TYPES = {"object": dict, "string": str, "array": list, "boolean": bool, "null": type(None)}
KNOWN = {"type", "const", "pattern", "minimum", "maximum", "items", "properties", "required", "additionalProperties",
         "anyOf", "description"}


def resolved(node, definitions):
    """A part of the schema with what its references name in their places."""
    if isinstance(node, list):
        return [resolved(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return resolved(definitions[node["$ref"].removeprefix("#/$defs/")], definitions)
    return {name: resolved(item, definitions) for name, item in node.items()}


def closed(node):
    """A part of the schema whose objects have the fields alone that it describes; a choice of anyOf describes some of them."""
    if isinstance(node, list):
        return [closed(item) for item in node]
    if not isinstance(node, dict):
        return node
    result = {name: item if name == "anyOf" else closed(item) for name, item in node.items()}
    if isinstance(node.get("properties"), dict):
        result.setdefault("additionalProperties", False)
    return result


def has_type(value, name):
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def problems(value, schema, where):
    unknown = set(schema) - KNOWN
    if unknown:
        yield f"{where}: the schema uses {sorted(unknown)}, which this checker does not know"
    names = schema.get("type", [])
    names = [names] if isinstance(names, str) else names
    if names and not any(has_type(value, name) for name in names):
        yield f"{where}: {value!r} is not of type {names}"
        return
    if "const" in schema and value != schema["const"]:
        yield f"{where}: {value!r} is not {schema['const']!r}"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{where}: {value!r} does not match {schema['pattern']}"
    if value is not None and "minimum" in schema and value < schema["minimum"]:
        yield f"{where}: {value!r} is below {schema['minimum']}"
    if value is not None and "maximum" in schema and value > schema["maximum"]:
        yield f"{where}: {value!r} is above {schema['maximum']}"
    if "anyOf" in schema and all(list(problems(value, option, where)) for option in schema["anyOf"]):
        yield f"{where}: is none of {schema['anyOf']}"
    if isinstance(value, list) and "items" in schema:
        for number, item in enumerate(value):
            yield from problems(item, schema["items"], f"{where}[{number}]")
    if isinstance(value, dict) and "properties" in schema:
        for name in schema.get("required", []):
            if name not in value:
                yield f"{where}: lacks {name}"
        for name, item in value.items():
            if name in schema["properties"]:
                yield from problems(item, schema["properties"][name], f"{where}.{name}")
            elif schema.get("additionalProperties") is False:
                yield f"{where}: has the unknown field {name}"


def all_problems(schema, lines):
    counts = collections.Counter()
    step = 0
    for number, line in enumerate(lines, 1):
        record = json.loads(line)
        kind = record.get("type")
        if kind not in schema["$defs"]:
            yield f"line {number}: unknown type {kind!r}"
            continue
        counts[kind] += 1
        yield from problems(record, closed(resolved(schema["$defs"][kind], schema["$defs"])), f"line {number}")
        if (number == 1) != (kind == "run_begin" and record["step"] == 0):
            yield f"line {number}: the run's beginning is not its first record"
        if kind == "step":
            if record["step"] != step + 1:
                yield f"line {number}: step {record['step']} follows step {step}"
            step = record["step"]
    if counts["run_end"] != 1 or json.loads(lines[-1])["type"] != "run_end":
        yield "the last record, and no other, must be run_end"
    for kind, count in sorted(counts.items()):
        print(kind, count)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        schema = json.load(file)
    with open(sys.argv[2], encoding="utf-8") as file:
        lines = file.read().splitlines()
    found = list(all_problems(schema, lines))
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
