#!/usr/bin/env python3
"""Loads a checkpoint with Hugging Face transformers and compares its logits and token ids with ours.

usage: hf_parity.py CHECKPOINT TEXT_FILE [--evaluate PATH] [--tolerance 1e-4]

CHECKPOINT is a checkpoint folder or a run directory. `evaluate --logits` computes ours on the first batch of
TEXT_FILE; transformers computes each of its spans alone, in fp32. Prints one JSON object; exit status 1 when the
largest difference is not below the tolerance, or when AutoTokenizer cuts the first line otherwise.
Needs torch, transformers, sentencepiece, safetensors, protobuf.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
import transformers
from safetensors.torch import load_file


def dump_of(evaluate, checkpoint, text_file, path):
    command = [evaluate, "--checkpoint", checkpoint, "--data", text_file, "--format", "lines", "--batch", "2",
               "--logits", path]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("text_file")
    parser.add_argument("--evaluate", default="evaluate", help="our binary")
    parser.add_argument("--tolerance", type=float, default=1e-4)
    args = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        path = str(pathlib.Path(folder) / "logits.safetensors")
        result = dump_of(args.evaluate, args.checkpoint, args.text_file, path)
        ours = load_file(path)
    model = transformers.AutoModelForCausalLM.from_pretrained(result["checkpoint"], dtype=torch.float32).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(result["checkpoint"])

    starts = ours["span_starts"].tolist()
    worst = 0.0
    with torch.no_grad():
        for begin, end in zip(starts, starts[1:]):
            theirs = model(ours["tokens"][None, begin:end]).logits[0]
            worst = max(worst, (theirs - ours["logits"][begin:end]).abs().max().item())

    with open(args.text_file, encoding="utf-8", newline="\n") as lines:
        first_line = next(line.rstrip("\n") for line in lines if line.rstrip("\n"))
    ids = tokenizer(first_line, add_special_tokens=False)["input_ids"][: starts[1]]
    same_ids = ids == ours["tokens"][: starts[1]].tolist()
    print(json.dumps({"max_abs_difference": worst, "spans": len(starts) - 1, "tokens": starts[-1],
                      "same_token_ids": same_ids, "tokenizer_class": type(tokenizer).__name__,
                      "transformers": transformers.__version__, "torch": torch.__version__}))
    return 0 if worst < args.tolerance and same_ids else 1


if __name__ == "__main__":
    sys.exit(main())
