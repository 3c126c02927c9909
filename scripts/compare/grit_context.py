#!/usr/bin/env python3
"""How far greedy tokens behind a kept context are those behind the same text as part of the prompt.

usage: grit_context.py CHECKPOINT TEXTS.jsonl [--tools FOLDER] [--texts N] [--prompt TEXT] [--max-tokens N]

TEXTS.jsonl has {"id", "text"} a line. embed --context-cache keeps the first N; generate continues the prompt behind each, and
behind pairs of them, and continues the same texts written out. Prints one JSON object: the share of continuations that are
equal, and of tokens before the first difference. Of a model that embeds with causal attention and of single texts it is 1.
"""
import argparse
import json
import pathlib
import tempfile

from grit_data import write_records
from train_runs import ROOT, run


def shared(some, others):
    """Tokens before the first that differs."""
    for count, (a, b) in enumerate(zip(some, others)):
        if a != b:
            return count
    return min(len(some), len(others))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("texts_file", type=pathlib.Path)
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--texts", type=int, default=100)
    parser.add_argument("--prompt", default="\n<|user|>\nWhat is this about?\n<|assistant|>\n")
    parser.add_argument("--max-tokens", type=int, default=32)
    args = parser.parse_args()
    texts = [json.loads(line) for line in args.texts_file.read_text().splitlines()][:args.texts]
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        write_records(scratch / "texts.jsonl", texts)
        run(args.tools / "embed", "-q", "--checkpoint", args.checkpoint, "--context-cache", scratch / "contexts", "-o",
            scratch / "vectors.npy", scratch / "texts.jsonl")

        def ids(lines, *options):
            out = run(args.tools / "generate", "-q", "--checkpoint", args.checkpoint, "--max-tokens", args.max_tokens,
                      *options, text="".join(json.dumps(line) + "\n" for line in lines))
            return [json.loads(line)["ids"] for line in out.splitlines()]

        result = {}
        groups = {"single": [[text] for text in texts], "pairs": [list(pair) for pair in zip(texts, texts[1:])]}
        for name, group in groups.items():
            kept = ids([{"prompt": args.prompt, "context": [text["id"] for text in own]} for own in group],
                       "--context-cache", scratch / "contexts")
            written = ids([{"prompt": "".join("<|embed|>\n" + text["text"] for text in own) + args.prompt} for own in group],
                          "--bos")
            result[name] = {"continuations": len(group),
                            "equal": sum(a == b for a, b in zip(kept, written)) / len(group),
                            "tokens_before_a_difference": sum(map(shared, kept, written)) / sum(map(len, written))}
        print(json.dumps(result))


if __name__ == "__main__":
    main()
