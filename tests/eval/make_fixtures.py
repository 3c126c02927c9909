#!/usr/bin/env python3
"""Makes tests/eval/fixtures/sampling.json: the probabilities that transformers draws a next token with.

usage: make_fixtures.py OUTPUT_DIR      (needs torch, transformers)

Logits are distinct: of equal ones at the bound of top_k transformers keeps all, ours the smaller ids. They are 32nds, which
JSON holds exactly.
"""
import json
import pathlib
import random
import sys

import torch
from transformers import (LogitsProcessorList, MinPLogitsWarper, RepetitionPenaltyLogitsProcessor,
                          TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper)

VOCABULARY = 40
CASES = [
    {"temperature": 1.0},
    {"temperature": 0.7, "top_k": 9},
    {"temperature": 1.5, "top_p": 0.8},
    {"temperature": 1.0, "min_p": 0.1},
    {"temperature": 1.3, "top_k": 20, "top_p": 0.9, "min_p": 0.05},
    {"temperature": 0.9, "repetition_penalty": 1.4},
    {"temperature": 1.1, "top_k": 25, "top_p": 0.95, "min_p": 0.02, "repetition_penalty": 0.8},
]


def processors(case):
    """In the order in which transformers' generate applies them."""
    chain = LogitsProcessorList()
    if "repetition_penalty" in case:
        chain.append(RepetitionPenaltyLogitsProcessor(case["repetition_penalty"]))
    chain.append(TemperatureLogitsWarper(case["temperature"]))
    if "top_k" in case:
        chain.append(TopKLogitsWarper(case["top_k"]))
    if "top_p" in case:
        chain.append(TopPLogitsWarper(case["top_p"]))
    if "min_p" in case:
        chain.append(MinPLogitsWarper(case["min_p"]))
    return chain


def main():
    draw = random.Random(1)
    fixtures = []
    for case in CASES:
        logits = [number / 32 for number in draw.sample(range(-160, 161), VOCABULARY)]
        seen = [draw.randrange(VOCABULARY) for _ in range(7)]
        scores = processors(case)(torch.tensor([seen]), torch.tensor([logits]))
        fixtures.append({**case, "logits": logits, "seen": seen, "probabilities": scores.softmax(-1)[0].tolist()})
    pathlib.Path(sys.argv[1], "sampling.json").write_text("[\n" + ",\n".join(json.dumps(fixture) for fixture in fixtures) + "\n]\n")


if __name__ == "__main__":
    main()
