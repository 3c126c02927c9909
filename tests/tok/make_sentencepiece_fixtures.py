#!/usr/bin/env python3
"""Trains small SentencePiece models with what the ones that everybody uses do not have; needs sentencepiece 0.2.3.

usage: make_sentencepiece_fixtures.py DIR     (tests/tok/testdata/sentencepiece)

The same input and version give the same files."""
import os
import pathlib
import sys
import tempfile

import sentencepiece

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import tokenizer_json_documents as documents  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
COMMON = dict(model_type="bpe", vocab_size=700, normalization_rule_name="identity", remove_extra_whitespaces=False,
              max_sentence_length=100000, num_threads=1, minloglevel=2, hard_vocab_limit=False)
MODELS = {
    "user-defined": dict(byte_fallback=True, split_digits=True, allow_whitespace_only_pieces=True,
                         user_defined_symbols=["<|endoftext|>", "<mask>", "the", "th", "[REFERENCE_DOC_3]", "\u65e5\u672c", "\u2581\u2581", "'s"]),
    "no-byte-fallback": dict(character_coverage=0.98),
    "suffix": dict(byte_fallback=True, treat_whitespace_as_suffix=True),
    "no-dummy-prefix": dict(byte_fallback=True, add_dummy_prefix=False, split_by_whitespace=False),
    "normalizing": dict(byte_fallback=True, normalization_rule_name=None, remove_extra_whitespaces=True),
    "unigram": dict(model_type="unigram", byte_fallback=True),
}
RULES = "FF21\t41\nFF22\t42\n41 301\tC1\n65 301\tE9\nA0\t20\n3000\t20\n9\t20\n"  # characters and what they become


def main():
    out = pathlib.Path(sys.argv[1]).resolve()
    out.mkdir(parents=True, exist_ok=True)
    shakespeare = (HERE / "../../examples/data/tinyshakespeare.txt").read_text()[:200000]
    texts = [text.replace("\n", " ").replace("\0", "") for text in documents.TEXTS] * 5
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # the models hold the names of the files
        pathlib.Path("corpus.txt").write_text(shakespeare + "\n".join(texts))
        pathlib.Path("rules.tsv").write_text(RULES)
        for name, options in MODELS.items():
            arguments = {**COMMON, **options}
            if arguments["normalization_rule_name"] is None:
                del arguments["normalization_rule_name"]
                arguments["normalization_rule_tsv"] = "rules.tsv"
            sentencepiece.SentencePieceTrainer.train(input="corpus.txt", model_prefix=name, **arguments)
            (out / f"{name}.model").write_bytes(pathlib.Path(f"{name}.model").read_bytes())


main()
