#!/usr/bin/env python3
"""Compares the ids of SentencePiece models by this suite and by the Python package, and how long both take.

usage: unigram.py --speed ENCODE_SPEED MODEL DOCUMENTS [MODEL DOCUMENTS ...]
       unigram.py --train FOLDER TEXT [TEXT ...]
       unigram.py --random COUNT --speed ENCODE_SPEED MODEL [MODEL ...]

DOCUMENTS is a file of documents with a zero byte behind each, as encode_speed takes them (tests/tok/encode_speed_main.cc;
build/release/tests/encode_speed). A line a pair says how many documents were compared and how many differ, and megabytes of
text for a CPU second on one thread: of the package, given bytes, and of the suite, cold and warm. The first documents that
differ are named by their numbers. Exits with 1 where any differs.

--random makes COUNT documents of bytes, of characters, and of parts of the models' pieces instead, the same every time.
--train trains the models that the comparison of 2026-11-28 used, on lines of the texts.

Needs scripts/make_unigram_fixtures.requirements.txt."""
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import time

import sentencepiece

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


def compare(encode_speed, model, file, folder):
    processor = sentencepiece.SentencePieceProcessor(model_file=model)
    documents = pathlib.Path(file).read_bytes().split(b"\0")
    if documents[-1] == b"":
        documents.pop()
    report, ids = suite_ids(encode_speed, model, file, folder)
    if len(ids) != len(documents):
        sys.exit(f"{file}: {len(documents)} documents, and ids of {len(ids)}")
    seconds, differing = 0.0, []
    for number, document in enumerate(documents):
        begin = time.process_time()
        expected = processor.encode(document)
        seconds += time.process_time() - begin
        if expected != ids[number]:
            differing.append(number)
    megabytes = sum(map(len, documents)) / 1e6
    cold, warm = (megabytes / pass_s for pass_s in report["cpu_s"][:2])
    print(f"{pathlib.Path(model).stem} {pathlib.Path(file).name}: {len(documents)} documents, {megabytes:.1f} MB, "
          f"{len(differing)} differ{' ' + str(differing[:5]) if differing else ''}; sentencepiece {sentencepiece.__version__} "
          f"{megabytes / seconds:.1f} MB/s, suite {cold:.1f} cold, {warm:.1f} warm", flush=True)
    return len(differing)


def main():
    arguments = sys.argv[1:]
    if len(arguments) < 3 or arguments[0] not in ("--train", "--speed", "--random"):
        sys.exit(__doc__)
    if arguments[0] == "--train":
        train(arguments[1], arguments[2:])
        return
    count = int(arguments[1]) if arguments[0] == "--random" else 0
    encode_speed, *rest = arguments[3 if count else 1:]
    with tempfile.TemporaryDirectory() as folder:
        pairs = list(zip(rest[::2], rest[1::2]))
        if count:
            pairs = []
            for model in rest:
                file = f"{folder}/random-{pathlib.Path(model).stem}"
                documents = random_documents(count, sentencepiece.SentencePieceProcessor(model_file=model))
                pathlib.Path(file).write_bytes(b"".join(document.replace(b"\0", b"") + b"\0" for document in documents))
                pairs.append((model, file))
        differing = [compare(encode_speed, model, file, folder) for model, file in pairs]
    sys.exit(1 if any(differing) else 0)


if __name__ == "__main__":
    main()
