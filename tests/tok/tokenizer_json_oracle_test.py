#!/usr/bin/env python3
"""Compares pretokenize with Hugging Face tokenizers on random documents, and on the real corpora where they are.

usage: tokenizer_json_oracle_test.py PRETOKENIZE

Says "skipped" when this Python lacks the package tokenizers. TRAINWRIGHT_NIGHTLY_DOCUMENTS: how many random documents
(1000000 in a nightly run; 2000 unless set: the unit tests compare 20000 by hashes of the library's ids).
TRAINWRIGHT_TEST_SEED chooses them. TRAINWRIGHT_TEST_DATA names the folder of real data.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    from tokenizers import Tokenizer
except ImportError:
    print("skipped: this Python has no package tokenizers")
    sys.exit(0)

import tokenizer_json_documents as documents

HERE = pathlib.Path(__file__).resolve().parent
BATCH = 10000


def encode(pretokenize, model, texts):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        for text in texts:
            file.write(json.dumps({"text": text}) + "\n")
        file.flush()
        done = subprocess.run([pretokenize, "--tokenizer", model, "--to", "jsonl", "--no-eos", "--max-document", "1GiB", file.name],
                              capture_output=True, check=True)
    return [json.loads(line)["ids"] for line in done.stdout.splitlines()]


def compare(pretokenize, model, texts):
    """pretokenize leaves out documents without tokens. Returns how many documents were compared and how many differ."""
    tokenizer = Tokenizer.from_file(str(model))
    theirs = [e.ids for e in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]
    expected = [(text, ids) for text, ids in zip(texts, theirs) if text and ids]
    ours = encode(pretokenize, model, texts)
    if len(ours) != len(expected):
        print(f"{model}: {len(ours)} documents with tokens, the library has {len(expected)}")
        return len(texts), len(texts)
    wrong = [(text, ids, mine) for (text, ids), mine in zip(expected, ours) if ids != mine]
    for text, ids, mine in sorted(wrong, key=lambda case: len(case[0]))[:3]:
        print(f"{model}: {ascii(text)[:300]}\n  the library: {ids[:50]}\n  pretokenize: {mine[:50]}")
    return len(expected), len(wrong)


def main():
    pretokenize = sys.argv[1]
    count = int(os.environ.get("TRAINWRIGHT_NIGHTLY_DOCUMENTS", "2000"))
    seed = int(os.environ.get("TRAINWRIGHT_TEST_SEED", "1"))
    data = os.environ.get("TRAINWRIGHT_TEST_DATA")
    models = sorted(p for kind in ("tokenizer_json", "text_tokenizers") for p in (HERE / "testdata" / kind).glob("*.json")
                    if p.name != "goldens.json")
    if data:
        models.append(pathlib.Path(data) / "tokenizers/gpt2.tokenizer.json")
    assert len(models) >= 24
    failed = False
    for model in models:
        compared = wrong = 0
        for begin in range(0, count, BATCH):
            texts = [documents.document(seed, i) for i in range(begin, min(count, begin + BATCH))]
            result = compare(pretokenize, model, texts)
            compared, wrong = compared + result[0], wrong + result[1]
        print(f"{model.name}: seed {seed}, {compared} documents compared, {wrong} differ")
        failed |= wrong > 0
    sys.exit(1 if failed else 0)


main()
