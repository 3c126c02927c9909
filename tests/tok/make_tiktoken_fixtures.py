#!/usr/bin/env python3
"""Writes tests/tok/testdata/tiktoken: a vocabulary cut out of GPT-2's, and what tiktoken 0.14.0 makes of texts with it.

usage: make_tiktoken_fixtures.py GPT2_TOKENIZER_JSON DIR

How text is cut goes with the vocabulary's name in tiktoken, so the small one is encoded by the rules of r50k_base, of
cl100k_base and of o200k_base."""
import base64
import json
import pathlib
import sys

import tiktoken

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import tokenizer_json_documents as documents  # noqa: E402

PATTERNS = {
    "r50k_base": r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s",
    "cl100k_base": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    "o200k_base": "|".join((
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+")),
}
KEPT, MORE = 1200, [b" \n", b"\n\n", b"  \n", b" \n  ", b"\n  ", b"123", b"12", b"'S", b"\t\t", b"...\n"]
DOCUMENTS, A_HASH = 4000, 100


def byte_characters():
    printable = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    table = {chr(b): b for b in printable}
    table.update({chr(256 + n): b for n, b in enumerate(b for b in range(256) if b not in printable)})
    return table


def gpt2_ranks(path):
    table = byte_characters()
    file = json.loads(pathlib.Path(path).read_text())
    special = {token["content"] for token in file["added_tokens"]}
    return {bytes(table[c] for c in token): rank for token, rank in file["model"]["vocab"].items() if token not in special}


def tiktoken_file(ranks):
    return b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in sorted(ranks.items(), key=lambda item: item[1]))


def main():
    out = pathlib.Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    ranks = {token: rank for token, rank in gpt2_ranks(sys.argv[1]).items() if rank < KEPT}
    for token in MORE:
        ranks.setdefault(token, len(ranks))
    (out / "small.tiktoken").write_bytes(tiktoken_file(ranks))
    written = documents.WRITTEN + ["a \n  ", "a \n\n \n  ", "\n \n", "x\t\n\n  ", "word'S 1234  \r\n ",
                                 "HelloWorld's XMLHttp'RE !!/\n/x", "\u0301a \u0301 A\u0301B\u02b0c \u01c5x'D", "http://a/b//\n c"]
    goldens = {"tiktoken": tiktoken.__version__, "seed": documents.SEED, "documents": DOCUMENTS, "documents_per_hash": A_HASH,
               "written": written, "rules": {}}
    for name, pattern in PATTERNS.items():
        encoding = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
        texts = [documents.document(documents.SEED, i) for i in range(DOCUMENTS)]
        ids = encoding.encode_ordinary_batch(texts)
        goldens["rules"][name] = {
            "ids": [encoding.encode_ordinary(text) for text in written],
            "hashes": [f"{documents.hash_of_ids(ids[i:i + A_HASH]):016x}" for i in range(0, DOCUMENTS, A_HASH)]}
    (out / "goldens.json").write_text(json.dumps(goldens, indent=0, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
