#!/usr/bin/env python3
"""Compares evaluate's measures of retrieval and of pairs with pytrec-eval-terrier's and scipy's on random runs with ties.

usage: retrieval_metrics.py [--tools FOLDER] [--runs N] [OUT.md]

Each run has 50 queries whose scores are drawn from a few values, some of which are equal only in single precision, in which
trec_eval holds them; grades from -1 to 3; documents without a judgement and judged ones that were not found. Means over
queries of nDCG and recall at several places, MAP, and MRR of rankings that are cut there. Pairs: vectors of two numbers
whose cosines and scores have many ties. Exit status 1 when a mean differs by more than 1e-9 or a correlation by more than
1e-6 (vectors are in single precision). PYTHON needs scripts/make_retrieval_fixtures.requirements.txt.
"""
import argparse
import datetime
import importlib.metadata
import json
import math
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

import numpy
import pytrec_eval
import scipy.stats

ROOT = pathlib.Path(__file__).resolve().parents[2]
CUTS = (1, 3, 5, 10, 100)
QUERIES = 50
SCORES = (0.0, 0.25, 0.5, -1.0, 0.1, 0.1 + 1e-9, 2.5, 1e-8)
PEERS = ("pytrec-eval-terrier", "scipy")
METRIC_BOUND, CORRELATION_BOUND = 1e-9, 1e-6


def evaluate(tools, *options):
    command = [tools / "evaluate", "-q", "--bootstrap", "0", *options]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip()[-800:])
    return json.loads(done.stdout)


def as_float(score):
    return struct.unpack("<f", struct.pack("<f", score))[0]


def random_run(rng):
    qrels, run = {}, {}
    for number in range(QUERIES):
        documents = [f"d{document}" for document in rng.sample(range(1000), rng.randrange(1, 150))]
        found = [document for document in documents if rng.random() < 0.9] or documents
        run[f"q{number}"] = {document: rng.choice(SCORES) if rng.random() < 0.8 else rng.uniform(-1, 1)
                             for document in found}
        qrels[f"q{number}"] = {document: rng.randrange(-1, 4) for document in documents if rng.random() < 0.5}
        qrels[f"q{number}"][f"e{number}"] = 1
    return qrels, run


def expected(qrels, run):
    places = ",".join(map(str, CUTS))
    found = pytrec_eval.RelevanceEvaluator(qrels, {f"ndcg_cut.{places}", f"recall.{places}", "map"}).evaluate(run)
    means = {"map": numpy.mean([values["map"] for values in found.values()])}
    for k in CUTS:
        means[f"ndcg_at_{k}"] = numpy.mean([values[f"ndcg_cut_{k}"] for values in found.values()])
        means[f"recall_at_{k}"] = numpy.mean([values[f"recall_{k}"] for values in found.values()])
        cut = {}
        for query, scores in run.items():
            ranked = sorted(scores, key=lambda document: (as_float(scores[document]), document), reverse=True)
            cut[query] = {document: scores[document] for document in ranked[:k]}
        values = pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank"}).evaluate(cut).values()
        means[f"mrr_at_{k}"] = numpy.mean([value["recip_rank"] for value in values])
    return means


def worst_of_runs(tools, scratch, runs):
    """By measure, the largest difference of a run's mean."""
    worst = {}
    for seed in range(runs):
        qrels, run = random_run(random.Random(seed))
        (scratch / "qrels").write_text("".join(f"{query} 0 {document} {grade}\n" for query, grades in qrels.items()
                                               for document, grade in grades.items()))
        (scratch / "run").write_text("".join(f"{query} Q0 {document} 1 {score!r} x\n" for query, scores in run.items()
                                             for document, score in scores.items()))
        ours = evaluate(tools, "--metric", "retrieval", "--run", scratch / "run", "--qrels", scratch / "qrels",
                        "--metric-at", ",".join(map(str, CUTS)))
        for measure, mean in expected(qrels, run).items():
            worst[measure] = max(worst.get(measure, 0), abs(ours[measure] - mean))
    return worst


def worst_of_pairs(tools, scratch, runs):
    worst = {"spearman": 0, "pearson": 0}
    for seed in range(runs):
        rng = random.Random(1000 + seed)
        count = rng.randrange(10, 300)
        angles = [rng.randrange(12) / 12 * math.pi for _ in range(count)]
        gold = [round(5 * math.cos(angle) + rng.gauss(0, 2)) / 2 for angle in angles]
        a = numpy.array([[1, 0]] * count, numpy.float32)
        b = numpy.array([[math.cos(angle), math.sin(angle)] for angle in angles], numpy.float32)
        numpy.save(scratch / "a.npy", a)
        numpy.save(scratch / "b.npy", b)
        (scratch / "pairs.jsonl").write_text("".join(json.dumps({"score": score}) + "\n" for score in gold))
        ours = evaluate(tools, "--metric", "sts", "--query-vectors", scratch / "a.npy", "--corpus-vectors",
                        scratch / "b.npy", "--data", scratch / "pairs.jsonl")
        cosines = b[:, 0].astype(numpy.float64)
        worst["spearman"] = max(worst["spearman"], abs(ours["spearman"] - scipy.stats.spearmanr(cosines, gold)[0]))
        worst["pearson"] = max(worst["pearson"], abs(ours["pearson"] - scipy.stats.pearsonr(cosines, gold)[0]))
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", nargs="?", type=pathlib.Path)
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--runs", type=int, default=100)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        tools, scratch = args.tools.resolve(), pathlib.Path(scratch)
        runs, pairs = worst_of_runs(tools, scratch, args.runs), worst_of_pairs(tools, scratch, args.runs)
    rows = [(measure, difference, METRIC_BOUND) for measure, difference in runs.items()]
    rows += [(measure, difference, CORRELATION_BOUND) for measure, difference in pairs.items()]
    versions = ", ".join(f"{package} {importlib.metadata.version(package)}" for package in PEERS)
    lines = [f"# Measures of retrieval beside pytrec-eval-terrier and scipy, {datetime.date.today()}", "",
             f"scripts/compare/retrieval_metrics.py: {args.runs} random runs of {QUERIES} queries with ties, and as many "
             f"sets of pairs; {versions}. Largest difference of a run's mean or of a set's correlation.", "",
             "| measure | difference | bound | |", "|---|---|---|---|"]
    for measure, difference, bound in rows:
        lines.append(f"| {measure} | {difference:.1e} | {bound:g} | {'holds' if difference <= bound else 'FAILS'} |")
    text = "\n".join(lines) + "\n"
    if args.out:
        args.out.write_text(text)
    else:
        print(text, end="")
    return 0 if all(difference <= bound for _, difference, bound in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
