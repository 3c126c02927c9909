#!/usr/bin/env python3
"""Makes tests/retrieval/fixtures/{metrics,correlation,bm25}.json: what pytrec-eval-terrier, scipy and bm25s compute.

usage: make_retrieval_fixtures.py OUTPUT_DIR      (needs scripts/make_retrieval_fixtures.requirements.txt)

Everything is drawn from fixed seeds. Scores have many ties, some only once they are rounded to single precision, as
trec_eval holds them.
"""
import json
import pathlib
import random
import struct
import sys

import bm25s
import pytrec_eval
import scipy.stats

CUTS = [1, 3, 5, 10, 100]
MEASURES = [f"ndcg_at_{k}" for k in CUTS] + [f"recall_at_{k}" for k in CUTS] + [f"mrr_at_{k}" for k in CUTS] + ["map"]


def as_float(score):
    return struct.unpack("<f", struct.pack("<f", score))[0]


def ranked(ranking):
    """Documents as trec_eval orders them."""
    return sorted(ranking, key=lambda document: (as_float(ranking[document]), document.encode()), reverse=True)


def random_query(rng):
    documents = [f"d{rng.randrange(1000)}" for _ in range(rng.randrange(1, 16))]
    level = rng.choice([1, 1, 2, 3])
    judged = {document: rng.randrange(-1, level + 1) for document in documents if rng.random() < 0.7}
    judged.update({f"e{i}": rng.randrange(0, level + 1) for i in range(rng.randrange(1, 5))})
    scores = [0.0, 0.25, 0.5, -1.0, 0.1, 0.1 + 1e-9, 2.5, 1e-8]
    run = {document: rng.choice(scores) if rng.random() < 0.8 else rng.uniform(-1, 1) for document in documents}
    run.update({document: rng.choice(scores) for document in judged if rng.random() < 0.4})
    return judged, run


def metrics():
    rng = random.Random(18)
    qrels, run = {}, {}
    for number in range(200):
        qrels[f"q{number}"], run[f"q{number}"] = random_query(rng)
    qrels["irrelevant"], run["irrelevant"] = {"d1": 0, "d2": -1}, {"d1": 1.0, "d2": 0.5}
    wanted = {f"ndcg_cut.{','.join(map(str, CUTS))}", f"recall.{','.join(map(str, CUTS))}", "map"}
    found = pytrec_eval.RelevanceEvaluator(qrels, wanted).evaluate(run)
    expected = {query: {f"ndcg_at_{k}": values[f"ndcg_cut_{k}"] for k in CUTS} |
                {f"recall_at_{k}": values[f"recall_{k}"] for k in CUTS} | {"map": values["map"]}
                for query, values in found.items()}
    for k in CUTS:  # of a ranking that is cut at k
        cut = {query: {document: ranking[document] for document in ranked(ranking)[:k]} for query, ranking in run.items()}
        for query, values in pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank"}).evaluate(cut).items():
            expected[query][f"mrr_at_{k}"] = values["recip_rank"]
    return {"measures": MEASURES, "qrels": qrels, "run": run,
            "expected": {query: [values[measure] for measure in MEASURES] for query, values in expected.items()}}


def correlation():
    rng = random.Random(19)
    cases = []
    for number in range(40):
        size = rng.randrange(3, 30)
        coarse = number % 2 == 0  # many ties
        x = [rng.randrange(5) / 4 if coarse else rng.gauss(0, 1) for _ in range(size)]
        y = [value + rng.gauss(0, 1) if not coarse else rng.randrange(6) for value in x]
        if len(set(x)) == 1 or len(set(y)) == 1:
            continue
        cases.append({"x": x, "y": y, "pearson": float(scipy.stats.pearsonr(x, y)[0]),
                      "spearman": float(scipy.stats.spearmanr(x, y)[0])})
    return {"cases": cases}


def bm25():
    rng = random.Random(20)
    words = ["alpha", "Beta", "gamma", "delta", "the", "of", "naïve", "ÉTÉ", "x1", "a", "snake_case", "Ωmega", "Ложь",
             "don't", "e-mail", "42"]
    texts = [" ".join(rng.choice(words) for _ in range(rng.randrange(3, 25))) + rng.choice([".", "!", ""])
             for _ in range(60)]
    queries = [" ".join(rng.choice(words) for _ in range(rng.randrange(1, 6))) + "?" for _ in range(20)]
    options = dict(stopwords="en", stemmer=None, show_progress=False)
    index = bm25s.BM25(method="lucene", k1=1.5, b=0.75, dtype="float64")
    index.index(bm25s.tokenize(texts, return_ids=False, **options), show_progress=False)
    tokens = bm25s.tokenize(queries, return_ids=False, **options)
    scores = [[0.0] * len(texts) if not query else [float(score) for score in index.get_scores(query)]
              for query in tokens]
    return {"texts": texts, "queries": queries, "words": tokens, "scores": scores}


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (("metrics", metrics()), ("correlation", correlation()), ("bm25", bm25())):
        (folder / f"{name}.json").write_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n")
