#!/usr/bin/env python3
"""Records of a copy task: numbers that are asked for again after so many bytes.

usage: recall.py OUT --lag N [--digits N] [--records N] [--questions N] [--seed N]

Writes OUT/train.jsonl ({"prompt", "response"}), OUT/prompts.jsonl ({"prompt"}) and OUT/gold.jsonl ({"prompt", "gold"}). A
prompt is a number, `lag` points, and a question mark; what fills the gap tells nothing, so a right answer was remembered.
"""
import argparse
import json
import pathlib
import random


def prompt_of(number, lag, digits):
    return f"{number:0{digits}d}{'.' * lag}?"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--lag", type=int, required=True)
    parser.add_argument("--digits", type=int, default=2)
    parser.add_argument("--records", type=int, help="default: so many that they have 8 MB, and 400 at least")
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    draw = random.Random(options.seed * 1_000_003 + options.lag)
    options.out.mkdir(parents=True, exist_ok=True)

    def write(name, records):
        (options.out / name).write_text("".join(json.dumps(record) + "\n" for record in records))

    train = []
    for _ in range(options.records or max(400, 8_000_000 // (options.lag + 8))):
        one = draw.randrange(10 ** options.digits)
        train.append({"prompt": prompt_of(one, options.lag, options.digits), "response": f"{one:0{options.digits}d}"})
    write("train.jsonl", train)
    asked = draw.sample(range(10 ** options.digits), min(options.questions, 10 ** options.digits))
    prompts = [(prompt_of(one, options.lag, options.digits), one) for one in asked]
    write("prompts.jsonl", [{"prompt": prompt} for prompt, _ in prompts])
    write("gold.jsonl", [{"prompt": prompt, "gold": one} for prompt, one in prompts])


if __name__ == "__main__":
    main()
