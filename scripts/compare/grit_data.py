"""Records for what scripts/compare measures of GRIT: seeded, in the files that pretokenize takes.

Every contrastive record has one positive and one negative, so that nothing is drawn, and a query shares a key with its
positive alone, so that there is something to learn.
"""
import json
import math
import pathlib
import random

from train_runs import run

WORDS = ("amber basin cedar delta ember fjord grove harbor island jungle kernel lantern meadow nectar orchard prairie quarry "
         "ridge saddle timber umbra valley willow yonder zephyr").split()


def sentence(rng, words):
    return " ".join(rng.choice(WORDS) for _ in range(max(1, words)))


def words_of_length(rng, median, spread, most):
    """How many words a text has: lognormal, as lengths of real texts are; spread 0: all alike."""
    return min(most, max(1, round(median * math.exp(spread * rng.gauss(0, 1)))))


def contrastive_records(count, seed, query_words=5, passage_words=12, spread=0.8, most_words=400, instructed=True):
    """spread: of the logarithms of the lengths."""
    rng = random.Random(seed)
    for number in range(count):
        key = f"{number:06d}"
        instruction = f"Find what {rng.choice(WORDS)} says" if instructed and number % 3 else ""
        query = f"{key} {sentence(rng, words_of_length(rng, query_words, spread, most_words))}"
        positive = f"{sentence(rng, words_of_length(rng, passage_words, spread, most_words))} {key}"
        negative = sentence(rng, words_of_length(rng, passage_words, spread, most_words))
        yield {"query": [instruction, query], "pos": [["", positive]], "neg": [["", negative]]}


def generative_records(count, seed, words=8, spread=0.8, most_words=400):
    """Conversations of one or two questions."""
    rng = random.Random(seed)
    for number in range(count):
        turns = []
        for _ in range(1 + number % 2):
            turns += [f"Say {sentence(rng, words_of_length(rng, words, spread, most_words))}",
                      sentence(rng, words_of_length(rng, words, spread, most_words))]
        yield {"text": turns}


def write_records(path, records):
    with open(path, "w", encoding="utf-8") as file:
        for record in records:
            file.write(json.dumps(record) + "\n")


def pack_records(folder, name, records, kind="contrastive", tools=pathlib.PurePath(), tokenizer="bytes"):
    """Writes NAME.jsonl and NAME-shards into a folder, by the tools of a folder or those in PATH. The path of the shards."""
    path, tokens, shards = folder / f"{name}.jsonl", folder / f"{name}.tokens", folder / f"{name}-shards"
    write_records(path, records)
    run(tools / "pretokenize", "-q", "--tokenizer", tokenizer, "--records", kind, "--template", "grit", path, "-o", tokens)
    run(tools / "pack", "-q", tokens, "-o", shards)
    return shards
