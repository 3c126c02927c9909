#!/usr/bin/env python3
"""Compares made-up tokenizer.json files with Hugging Face tokenizers: any normalizers before any pre-tokenizer before any
model, over few characters, so that parts meet that no family puts together.

usage: random_tokenizers_oracle_test.py ENCODE_SPEED

Says "skipped" when this Python lacks the package tokenizers. A file that the library refuses or panics on, or that the suite
refuses by name, is left out. Each other one is encoded by the suite, by its slow reference, and by the library.
TRAINWRIGHT_NIGHTLY_TOKENIZERS: how many files (60 unless set). TRAINWRIGHT_TEST_SEED chooses them.
"""
import collections
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

try:
    from tokenizers import Tokenizer
except ImportError:
    print("skipped: this Python has no package tokenizers")
    sys.exit(0)

FAMILIES = pathlib.Path(__file__).resolve().parent / "testdata/text_tokenizers"
MARK, DOCUMENTS = "\u2581", 60
CHARACTERS = list("abcde .,'!A\u00e9") + [
    "e\u0301", MARK, "\n", "\u4e2d", "\ufb01", "\u00a8", "\u0300", "\U0001f600", "\u00ad", "\u200b", "\uff25", "\u0130", "\x01", "\t", "\ud55c"]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
MAPS = [json.loads((FAMILIES / "xlmr.json").read_text())["normalizer"],
        json.loads((FAMILIES / "t5.json").read_text())["normalizer"]["normalizers"][0]]
FOLD = {"type": "Replace", "pattern": {"String": " "}, "content": MARK}


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.flip = lambda chance=0.5: self.random.random() < chance

    def word(self):
        return "".join(self.random.choice(CHARACTERS) for _ in range(self.random.randint(1, 4)))

    def text(self):
        parts = ["", " ", "  ", "<s>", "</s>", "<m>", "ab", "Ab", MARK]
        count = self.random.randint(0, 12) * (8 if self.flip(0.1) else 1)  # some longer than what is looked at together
        return "".join(self.random.choice([self.word(), self.word() + " "] + parts) for _ in range(count))

    def normalizer_step(self):
        choose = self.random.choice
        regex = [(" {2,}", [" ", MARK, ""]), (r"\s+", [" ", MARK, ""]), (r"\s{2,}", [" "]), (" +", [" ", MARK]),
                 (r"\A" + MARK, [MARK * 2]), (r"\A +| +\z", [""])]
        expression, contents = choose(regex)
        return choose([{"type": name} for name in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt")] + MAPS + [
            {"type": "Strip", "strip_left": self.flip(), "strip_right": self.flip()}, FOLD,
            {"type": "Replace", "pattern": {"String": "ab"}, "content": choose(["", "b", "ba"])},
            {"type": "Replace", "pattern": {"Regex": expression}, "content": choose(contents)},
            {"type": "Prepend", "prepend": choose([MARK, "a", " "])},
            {"type": "BertNormalizer", "clean_text": self.flip(), "handle_chinese_chars": self.flip(),
             "strip_accents": choose([None, True, False]), "lowercase": self.flip()}])

    def normalizer(self):
        steps = [self.normalizer_step() for _ in range(self.random.choice([0, 0, 1, 1, 2, 3]))]
        if self.flip(0.3):
            doubled = {"type": "Replace", "pattern": {"Regex": r"\A" + MARK}, "content": MARK * 2}
            steps += self.random.choice([[{"type": "Prepend", "prepend": MARK}, FOLD], [FOLD], [FOLD, doubled]])
        return {"type": "Sequence", "normalizers": steps} if steps else None

    def pre_tokenizer(self):
        metaspace = {"type": "Metaspace", "replacement": MARK, "prepend_scheme": self.random.choice(["always", "first", "never"]),
                     "split": self.flip(0.6)}
        words = {"type": "WhitespaceSplit"}
        return self.random.choice([None, metaspace, metaspace, words, {"type": "BertPreTokenizer"},
                                   {"type": "Sequence", "pretokenizers": [words, metaspace]},
                                   {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}])

    def bpe(self, characters, bytes_):
        tokens, merges = list(dict.fromkeys(characters + [MARK] * self.flip(0.8))), []
        for _ in range(self.random.randint(0, 25)):
            pair = [self.random.choice(tokens), self.random.choice(tokens)]
            if "<unk>" in pair or len("".join(pair)) > 8 or pair in merges:
                continue
            merges.append(pair)
            tokens += ["".join(pair)] * ("".join(pair) not in tokens)
        return {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None, "end_of_word_suffix": None,
                "fuse_unk": self.flip(), "byte_fallback": bool(bytes_), "ignore_merges": self.flip(0.3),
                "vocab": {token: i for i, token in enumerate(tokens + bytes_)}, "merges": merges}

    def unigram(self, characters, bytes_):
        tokens = characters[:-1] + [MARK] * self.flip(0.8) + [self.word() for _ in range(20)] + [MARK + self.word() for _ in range(10)]
        tokens = ["<unk>"] + list(dict.fromkeys(tokens + bytes_))
        score = lambda: self.random.choice([-self.random.random() * 10, -float(self.random.randint(1, 4)), self.random.random()])  # noqa: E731
        return {"type": "Unigram", "unk_id": 0, "byte_fallback": bool(bytes_),
                "vocab": [[token, score() if i else 0.0] for i, token in enumerate(tokens)]}

    def word_piece(self, characters):
        prefix = self.random.choice(["##", "@", ""])
        tokens = characters + [self.word() for _ in range(20)] + [prefix + self.word() for _ in range(20)]
        tokens = list(dict.fromkeys(tokens + [prefix + c for c in characters[:-1]]))
        return {"type": "WordPiece", "unk_token": "<unk>", "continuing_subword_prefix": prefix,
                "max_input_chars_per_word": self.random.choice([3, 100]), "vocab": {token: i for i, token in enumerate(tokens)}}

    def model(self):
        characters = [c for c in CHARACTERS if len(c) == 1 and self.flip(0.8)] + ["<unk>"]
        bytes_ = BYTES if self.flip(0.4) else []
        kind = self.random.choice(["bpe", "bpe", "unigram", "word_piece"])
        return self.word_piece(characters) if kind == "word_piece" else getattr(self, kind)(characters, bytes_)

    def added_tokens(self, vocabulary):
        names, added = [token[0] for token in vocabulary] if isinstance(vocabulary, list) else list(vocabulary), []
        for content in self.random.sample(["<s>", "</s>", "<m>", "ab", "Ab", " ", "a b", "<unk>"], self.random.randint(0, 4)):
            if content not in names:
                names.append(content)
            added.append({"id": names.index(content), "content": content, "single_word": self.flip(0.2), "lstrip": self.flip(0.3),
                          "rstrip": self.flip(0.3), "normalized": self.flip(0.4), "special": self.flip()})
        return added

    def file(self):
        model = self.model()
        return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": self.added_tokens(model["vocab"]),
                "normalizer": self.normalizer(), "pre_tokenizer": self.pre_tokenizer(), "post_processor": None, "decoder": None,
                "model": model}


def library(file, texts):
    """The ids of each text; None for what it panics on. Nothing when it refuses the file."""
    def encode(text):
        try:
            return tokenizer.encode(text, add_special_tokens=False).ids
        except BaseException:  # noqa: BLE001  pyo3's PanicException is no Exception
            return None

    try:
        tokenizer = Tokenizer.from_str(file)
    except BaseException:  # noqa: BLE001
        return None
    return [encode(text) for text in texts]


def suite(encode_speed, folder, arguments):
    """The ids of each text, or why the file is refused."""
    done = subprocess.run([encode_speed, folder / "tokenizer.json", folder / "texts", "2", "--ids", folder / "ids"] + arguments,
                          capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip()
    ids = (folder / "ids").read_bytes()
    lists = [[]]
    for number in struct.unpack(f"<{len(ids) // 4}I", ids):
        if number == 0xFFFFFFFF:
            lists.append([])
        else:
            lists[-1].append(number)
    return lists[:-1]


def main():
    count = int(os.environ.get("TRAINWRIGHT_NIGHTLY_TOKENIZERS", "60"))
    seed = int(os.environ.get("TRAINWRIGHT_TEST_SEED", "1"))
    maker, told = Maker(seed), collections.Counter()
    for number in range(count):
        file, texts = json.dumps(maker.file()), [text for text in (maker.text() for _ in range(DOCUMENTS)) if text]
        theirs = library(file, texts)
        if theirs is None:
            told["refused by the library"] += 1
            continue
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "tokenizer.json").write_text(file)
            (folder / "texts").write_bytes(b"".join(text.encode() + b"\0" for text in texts))
            ours, reference = suite(sys.argv[1], folder, []), suite(sys.argv[1], folder, ["--reference"])
        if isinstance(ours, str):
            assert "which this version does not do" in ours or "added token" in ours, f"file {number}: {ours}"
            told["refused by name"] += 1
            continue
        told["compared"] += 1
        told["documents"] += len(texts)
        for text, wanted, mine, slow in zip(texts, theirs, ours, reference, strict=True):
            if mine != slow or (wanted is not None and mine != wanted):
                told["documents that differ"] += 1
                print(f"seed {seed}, file {number}: {ascii(text)}\n  {wanted}\n  {mine}\n  {slow}")
    print(f"seed {seed}: " + ", ".join(f"{n} {what}" for what, n in told.items()))
    assert told["compared"] >= count // 4
    sys.exit(1 if told["documents that differ"] else 0)


main()
