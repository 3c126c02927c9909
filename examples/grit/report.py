#!/usr/bin/env python3
"""The table of the Makefile beside this: how well each model finds solutions, and how well it predicts them."""
import json
import pathlib
import sys

work = pathlib.Path(sys.argv[1])


def read(name):
    path = work / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def measure(result, name):
    low, high = result[name + "_interval"]
    return f"{result[name]:.3f} ({low:.3f} to {high:.3f})"


untrained = read("retrieval-untrained")
rows = [("untrained", untrained), ("BM25", untrained["baselines"]["bm25"]), ("embedding", read("retrieval-embedding")),
        ("unified", read("retrieval-unified"))]
perplexity = {name: read(f"perplexity-{name}") for name in ("untrained", "generative", "unified")}
print("# Solutions of grade-school problems\n")
print(f"{untrained['queries']} problems, each with its solution among {untrained['corpus']}; in brackets bootstrap 95 % "
      "intervals.\n")
print("| model | nDCG@10 | MRR@10 | Recall@10 | Recall@100 |")
print("|---|---|---|---|---|")
for system, result in rows:
    print(f"| {system} | " + " | ".join(measure(result, name) for name in ("ndcg_at_10", "mrr_at_10", "recall_at_10",
                                                                           "recall_at_100")) + " |")
print("\nPerplexity of the solutions, token by token:\n")
print("| model | perplexity | nats a token |")
print("|---|---|---|")
for system, result in perplexity.items():
    print(f"| {system} | {result['perplexity']:.2f} | {result['loss_nats']:.4f} |")
