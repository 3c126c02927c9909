#!/usr/bin/env python3
"""Checks or makes tests/tok/testdata/unigram: small SentencePiece unigram models and the ids that SentencePiece 0.2.3 gives.

usage: make_unigram_fixtures.py [--update|--update-models]     (needs scripts/make_unigram_fixtures.requirements.txt)

Without an option, says whether the recorded ids are those that this version of SentencePiece gives, and exits with 1
where they are not. --update records them anew; --update-models trains the models before that: on tiny Shakespeare and
sentences of its own in many scripts, with the same result every time.

ids.json has, for each model, FNV-1a hashes of the ids: of each written document (as hex of its bytes, since some are not
UTF-8), of the random documents of tests/tok/tokenizer_json_documents.py, DOCUMENTS_PER_HASH a hash, and of tiny Shakespeare as
one document."""
import json
import os
import pathlib
import random
import sys
import tempfile
import unicodedata

import sentencepiece

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/tok"))
import tokenizer_json_documents as documents  # noqa: E402

VERSION = "0.2.3"
OUT = ROOT / "tests/tok/testdata/unigram"
BOOK = ROOT / "examples/data/tinyshakespeare.txt"
DOCUMENTS, DOCUMENTS_PER_HASH = 1000, 10

SENTENCES = [
    "Der Fluß fließt durch die größte Stadt, und die Brücke führt über ihn hinweg.", "Où est la bibliothèque? Près de l'hôtel, à côté du café.",
    "El niño pequeño corrió detrás del pájaro hasta la montaña.", "Şu ağacın gölgesinde oturan çocuğun adı İlkay.",
    "Мы шли по длинной дороге, и снег тихо падал на поля.", "Η θάλασσα ήταν ήρεμη και ο ουρανός γαλανός.", "הילד הלך אל הים וראה ספינה גדולה.",
    "كان الطريق طويلا والسماء صافية فوق المدينة.", "सुबह की धूप में बच्चे मैदान में खेल रहे थे।", "เช้าวันนี้ฝนตกหนักและถนนเปียก",
    "今日は朝から雨が降っていて、駅まで歩くのに三十分かかった。", "カタカナとひらがなと漢字が混ざった文章を読むのは楽しい。", "ﾊﾝｶｸ ｶﾀｶﾅ と全角ＡＢＣ１２３。",
    "昨天晚上我们在河边散步,看见月亮升起来了。", "這座城市的街道很寬,樹木很高。", "오늘 아침에는 비가 와서 우산을 들고 역까지 걸어갔다.",
    "Το 100% των 0000 και 000 και 00, 1000000 ή 10,000.", "x = y + 1; if (a != b) { return 0x00FF; }", "¼ ½ ¾ ﬁ ﬂ ﬀ ² ³ ™ № ㎏ ㍿ Ⅷ ｱ",
    "e\u0301t\u00e9 \u00c5ngstr\u00f6m A\u030angstro\u0308m \u1e9b\u0323", "\U0001f600 \U0001f468\u200d\U0001f469\u200d\U0001f467 \u270b\U0001f3fd",
]
COMMON = dict(model_type="unigram", vocab_size=600, max_sentence_length=100000, num_threads=1, minloglevel=2,
              hard_vocab_limit=False)
MODELS = {
    "nmt-nfkc-cf": dict(normalization_rule_name="nmt_nfkc_cf"),
    "byte-fallback": dict(normalization_rule_name="identity", remove_extra_whitespaces=False, byte_fallback=True,
                          character_coverage=0.99, allow_whitespace_only_pieces=True, split_digits=True,
                          user_defined_symbols=["<|endoftext|>", "<mask>", "the", "th", "\u65e5\u672c", "\u2581\u2581", "'s", "  a", "\n"]),
    "suffix": dict(rules=True, treat_whitespace_as_suffix=True),
    "no-prefix": dict(normalization_rule_name="identity", add_dummy_prefix=False, split_by_whitespace=False,
                      remove_extra_whitespaces=False),
    "user-defined": dict(rules=True, byte_fallback=True, user_defined_symbols=["<mask>", "A\u0301", "  ", "\u2581the", "000"]),
}


def rules():
    """A small map of characters: compatibility characters of the sentences, their parts together, and white space."""
    lines = {}
    for character in sorted(set("".join(SENTENCES)) | set("\uff21\uff22\u00a0\u3000\t\n\u2126")):
        made = unicodedata.normalize("NFKC", character)
        if made != character:
            lines[character] = made
        parts = unicodedata.normalize("NFD", character)
        if parts != character:
            lines[parts] = character
    lines.update({"\t": " ", "\n": " ", "\u200b": "", "\u00a8": " \u0308"})
    hexadecimal = [" ".join(f"{ord(c):X}" for c in text) for pair in lines.items() for text in pair]
    return "".join(f"{a}\t{b}\n" for a, b in zip(hexadecimal[::2], hexadecimal[1::2]))


def written():
    """Documents as bytes."""
    texts = documents.WRITTEN + documents.TEXTS + SENTENCES
    texts += ["\u2581", "\u2581\u2581the", " \u2581 ", " \u200b ", "\u200b", "000", "0000", "00000000000", "1000000000000", "a\u2581", " <mask>", "<mask> ",
              "<0x0A>", "<unk>", "<s>a</s>", "A\u0301", "A \u0301", "a" * 3000, "\u65e5" * 700, "\ue000" * 50 + "a", " \u3000 x \u00a0 "]
    made = [text.encode() for text in texts]
    rng = random.Random(20261128)
    for _ in range(60):
        text = bytearray("".join(rng.choice(texts) for _ in range(rng.randrange(1, 6))).encode())
        for _ in range(rng.randrange(1, 5)):
            text.insert(rng.randrange(len(text) + 1), rng.randrange(256))
        made.append(bytes(text))
    made += [bytes(rng.randrange(256) for _ in range(rng.randrange(200))) for _ in range(40)]
    return made


def train():
    OUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # the models hold the names of the files
        pathlib.Path("corpus.txt").write_text(BOOK.read_text()[:200000] + "\n".join(SENTENCES * 40) + "\n")
        pathlib.Path("rules.tsv").write_text(rules())
        for name, options in MODELS.items():
            arguments = {**COMMON, **options}
            if arguments.pop("rules", False):
                arguments["normalization_rule_tsv"] = "rules.tsv"
            sentencepiece.SentencePieceTrainer.train(input="corpus.txt", model_prefix=name, **arguments)
            (OUT / f"{name}.model").write_bytes(pathlib.Path(f"{name}.model").read_bytes())


def hash_of(*lists):
    return f"{documents.hash_of_ids(lists):016x}"


def record():
    texts = [documents.document(documents.SEED, index) for index in range(DOCUMENTS)]
    cases = written()
    recorded = {"made_with": f"sentencepiece {sentencepiece.__version__}", "seed": documents.SEED, "documents": DOCUMENTS,
                "documents_per_hash": DOCUMENTS_PER_HASH, "texts": documents.TEXTS,
                "written": [text.hex() for text in cases], "models": {}}
    for name in MODELS:
        processor = sentencepiece.SentencePieceProcessor(model_file=str(OUT / f"{name}.model"))
        ids = [processor.encode(text) for text in texts]
        recorded["models"][name] = {
            "written": [hash_of(processor.encode(text)) for text in cases],
            "random": [hash_of(*ids[i:i + DOCUMENTS_PER_HASH]) for i in range(0, DOCUMENTS, DOCUMENTS_PER_HASH)],
            "book": hash_of(processor.encode(BOOK.read_text())),
        }
    return json.dumps(recorded, indent=0, separators=(",", ":")).replace(",\n", ",") + "\n"


def main():
    options = set(sys.argv[1:])
    if not options <= {"--update", "--update-models"}:
        sys.exit(__doc__)
    if sentencepiece.__version__ != VERSION:
        sys.exit(f"needs sentencepiece {VERSION}, and this is {sentencepiece.__version__}")
    if "--update-models" in options:
        train()
    recorded = record()
    file = OUT / "ids.json"
    if options:
        file.write_text(recorded)
    elif file.read_text() != recorded:
        sys.exit(f"{file}: these are not the ids of sentencepiece {VERSION}")


if __name__ == "__main__":
    main()
