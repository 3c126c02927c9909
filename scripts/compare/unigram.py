#!/usr/bin/env python3
"""Compares the ids of SentencePiece models by this suite and by the Python package, and how fast both are.

usage: unigram.py --speed ENCODE_SPEED [--out OUT [--rounds N] [--cpus LIST]] MODEL DOCUMENTS [MODEL DOCUMENTS ...]
       unigram.py --train FOLDER TEXT [TEXT ...]
       unigram.py --documents DOCUMENTS < TEXT
       unigram.py --train-one DOCUMENTS
       unigram.py --random COUNT --speed ENCODE_SPEED MODEL [MODEL ...]

DOCUMENTS is a file of documents with a zero byte behind each, as encode_speed takes them (tests/tok/encode_speed_main.cc;
build/release/tests/encode_speed). A line a pair says how many documents were compared and how many differ. The first
documents that differ are named by their numbers. Exits with 1 where any differs. With --out they are timed, too, by the protocol
of protocol.py: megabytes of text for a CPU second on one thread, of the package, given bytes, one document at a time and all in one
list (as lists of ids and as NumPy's arrays), and of the suite, cold and warm (the package remembers nothing); OUT.json and OUT.md are written.

--random makes COUNT documents of bytes, of characters, and of parts of the models' pieces instead, the same every time.
--train trains the models that the comparison of 2026-11-28 used, on lines of the texts. --documents makes DOCUMENTS of 12 MB of
standard input at most: of JSON lines the texts, of other text its lines, up to 6,000 characters a document; and DOCUMENTS.txt,
which --train-one trains DOCUMENTS.model on, the one of Chinese with byte fallback.

Needs scripts/make_unigram_fixtures.requirements.txt."""
import argparse
import importlib.util
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

import protocol
import sentencepiece
from protocol import Comparison, Contestant, Sample

BASE = dict(model_type="unigram", max_sentence_length=20000, num_threads=1, minloglevel=2, input_sentence_size=20000,
            shuffle_input_sentence=True, hard_vocab_limit=False, vocab_size=8000)
MODELS = {
    "nmt-nfkc": {},
    "nmt-nfkc-bytes": dict(byte_fallback=True, character_coverage=0.999),
    "nfkc": dict(normalization_rule_name="nfkc"),
    "nmt-nfkc-cf": dict(normalization_rule_name="nmt_nfkc_cf"),
    "nfkc-cf-user-defined": dict(normalization_rule_name="nfkc_cf", vocab_size=6000,
                                 user_defined_symbols=["<|endoftext|>", "the", "\u2581\u2581", "\u65e5\u672c", "\\fB", ".PP", "<mask>"]),
    "identity": dict(normalization_rule_name="identity", remove_extra_whitespaces=False, byte_fallback=True,
                     allow_whitespace_only_pieces=True, split_digits=True),
    "suffix": dict(vocab_size=4000, treat_whitespace_as_suffix=True),
    "no-prefix": dict(vocab_size=4000, add_dummy_prefix=False, remove_extra_whitespaces=False, split_by_whitespace=False),
}


def train(folder, texts):
    for name, options in MODELS.items():
        sentencepiece.SentencePieceTrainer.train(input=",".join(texts), model_prefix=f"{folder}/{name}", **{**BASE, **options})


def documents_in(stream, most_bytes=12e6, most_characters=6000):
    """Documents of JSON lines, or of lines joined, of which nothing is left out but zero bytes."""
    taken, lines = 0, []
    for line in stream:
        if line.startswith('{"'):
            documents = [json.loads(line)["text"]]
        else:
            full = lines and sum(map(len, lines)) + len(line) > most_characters
            documents, lines = (["".join(lines)], [line]) if full else ([], [*lines, line])
        for document in documents:
            if taken < most_bytes:
                document = document.replace("\0", "")
                taken += len(document.encode())
                yield document
    if lines and taken < most_bytes:
        yield "".join(lines).replace("\0", "")


def make_documents(path):
    with open(path, "wb") as documents, open(f"{path}.txt", "w", encoding="utf-8") as text:
        for document in documents_in(open(0, encoding="utf-8", errors="replace")):
            documents.write(document.encode() + b"\0")
            text.write(document + "\n")


def train_one(path):
    more = dict(byte_fallback=True, character_coverage=0.999) if path.name == "chinese" else {}
    sentencepiece.SentencePieceTrainer.train(input=f"{path}.txt", model_prefix=str(path), **{**BASE, **more})


def random_documents(count, processor):
    """Parts that make ties and long ways, and what is no text at all."""
    rng = random.Random(20261128)
    pieces = [processor.id_to_piece(i).replace("\u2581", " ") for i in range(processor.get_piece_size())]
    for _ in range(count):
        kind, size = rng.randrange(6), rng.choice([5, 50, 500])
        if kind == 0:
            yield bytes(rng.randrange(1, 256) for _ in range(size))
        elif kind == 1:
            yield "".join(chr(rng.choice([rng.randrange(1, 0x250), rng.randrange(0x300, 0xD800), rng.randrange(0x1F000, 0x1FAFF)]))
                          for _ in range(size)).encode()
        elif kind == 2:
            part = rng.choice(pieces)
            yield (part * rng.randrange(1, 200)).encode()
        elif kind == 3:
            yield "".join(rng.choice("0123456789 .,") for _ in range(size)).encode()
        else:
            text = bytearray("".join(rng.choice(pieces) for _ in range(size)).encode())
            for _ in range(rng.randrange(4)):
                text.insert(rng.randrange(len(text) + 1), rng.randrange(1, 256))
            yield bytes(text)


def suite_ids(encode_speed, model, file, folder):
    """What encode_speed reports, and the ids of each document."""
    out = pathlib.Path(folder) / "ids"
    report = json.loads(subprocess.run([encode_speed, model, file, "2", "--ids", str(out)], check=True, stdout=subprocess.PIPE).stdout)
    raw = out.read_bytes()
    ids, one = [], []
    for (value,) in struct.iter_unpack("<I", raw):
        if value == 0xFFFFFFFF:
            ids.append(one)
            one = []
        else:
            one.append(value)
    return report, ids


def compare_ids(options, model, file, folder):
    """How many documents differ."""
    processor = sentencepiece.SentencePieceProcessor(model_file=model)
    documents = documents_of(file)
    _, ids = suite_ids(options.speed, model, file, folder)
    if len(ids) != len(documents):
        sys.exit(f"{file}: {len(documents)} documents, and ids of {len(ids)}")
    differing = [number for number, document in enumerate(documents) if processor.encode(document) != ids[number]]
    print(f"{pathlib.Path(model).stem} {pathlib.Path(file).name}: {len(documents)} documents, "
          f"{sum(map(len, documents)) / 1e6:.1f} MB, {len(differing)} differ{' ' + str(differing[:5]) if differing else ''}",
          flush=True)
    return len(differing)


def documents_of(file):
    documents = pathlib.Path(file).read_bytes().split(b"\0")
    return documents[:-1] if documents[-1] == b"" else documents


def comparison_of(options, model, file):
    processor = sentencepiece.SentencePieceProcessor(model_file=model)
    documents = documents_of(file)
    megabytes = sum(map(len, documents)) / 1e6

    def suite():
        report = json.loads(protocol.run_command([options.speed, model, file, "2", "1"]).stdout)
        return {aspect: Sample(megabytes, report["cpu_s"][turn], report["wall_s"][turn])
                for turn, aspect in enumerate(("cold", "warm"))}

    def package(encode):
        _, took = protocol.timed(lambda: encode(documents))
        return {aspect: Sample.of(megabytes, took) for aspect in ("cold", "warm")}

    ways = {"one by one": lambda some: [processor.encode(document) for document in some],
            "whole list": lambda some: processor.encode(some, num_threads=1)}
    if importlib.util.find_spec("numpy"):
        ways["whole list, numpy"] = lambda some: processor.encode(some, num_threads=1, out_type="numpy")
    # Threads and imports of a first call are not timed.
    contestants = [Contestant(f"sentencepiece, {name}", lambda encode=encode: package(encode), "sentencepiece",
                              lambda encode=encode: encode(documents[:1])) for name, encode in ways.items()]
    name = f"{pathlib.Path(model).stem}, {pathlib.Path(file).name}"
    return Comparison(name, "MB of text", [Contestant("trainwright", suite), *contestants],
                      **protocol.how(options), settings={"megabytes": round(megabytes, 3)})


def random_pairs(options, folder):
    for model in options.paths:
        file = f"{folder}/random-{pathlib.Path(model).stem}"
        documents = random_documents(options.random, sentencepiece.SentencePieceProcessor(model_file=model))
        pathlib.Path(file).write_bytes(b"".join(document.replace(b"\0", b"") + b"\0" for document in documents))
        yield model, file


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--train")
    parser.add_argument("--documents", type=pathlib.Path)
    parser.add_argument("--train-one", type=pathlib.Path)
    parser.add_argument("--random", type=int)
    parser.add_argument("--speed")
    parser.add_argument("--out")
    protocol.add_options(parser)
    parser.add_argument("paths", nargs="*")
    options = parser.parse_args()
    if options.documents:
        return make_documents(options.documents)
    if options.train_one:
        return train_one(options.train_one)
    if not options.paths:
        parser.error("no texts or models")
    if options.train:
        return train(options.train, options.paths)
    if not options.speed:
        parser.error("--speed is missing")
    with tempfile.TemporaryDirectory() as folder:
        pairs = list(random_pairs(options, folder) if options.random else zip(options.paths[::2], options.paths[1::2]))
        differing = [compare_ids(options, model, file, folder) for model, file in pairs]
        if options.out:
            record = protocol.Record(options.out, "SentencePiece models beside the library", "scripts/compare/unigram.py",
                                     notes=f"sentencepiece {sentencepiece.__version__}.")
            for model, file in pairs:
                record.run(comparison_of(options, model, file))
    return 1 if any(differing) else 0


if __name__ == "__main__":
    sys.exit(main())
