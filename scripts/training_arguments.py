#!/usr/bin/env python3
"""Compares the list of the fields of transformers' TrainingArguments, which tests read, with those that are installed.

usage: training_arguments.py [--update]      (needs transformers and torch)

tests/cli/train/training_arguments.json has the version of transformers, each field with its default, and the file that
TrainingArguments(output_dir="out").to_json_string() is. Exit status 1 where the installed version has others; --update
writes those. tools/training_arguments_options.cc then says what each of them is here.
"""
import argparse
import dataclasses
import json
import pathlib
import sys

LIST = pathlib.Path(__file__).resolve().parent.parent / "tests/cli/train/training_arguments.json"


def default_of(field):
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return getattr(field.default, "value", field.default)


def installed():
    import transformers
    fields = {field.name: default_of(field) for field in dataclasses.fields(transformers.TrainingArguments)}
    written = json.loads(transformers.TrainingArguments(output_dir="out").to_json_string())
    return {"transformers": transformers.__version__, "fields": fields, "written": written}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="write the list")
    options = parser.parse_args()
    text = json.dumps(installed(), indent=1) + "\n"
    if options.update:
        LIST.write_text(text)
    elif LIST.read_text() != text:
        sys.exit(f"training_arguments.py: {LIST.name} is of another version: see --update")


if __name__ == "__main__":
    main()
