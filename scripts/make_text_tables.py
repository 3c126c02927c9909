#!/usr/bin/env python3
"""Writes lib/tok/text_tables.cc: what the normalizers of Hugging Face tokenizers take for a mark, a control character,
punctuation or part of a character before it, and how they decompose for compatibility and lower the case.

  make_text_tables.py [--check]

As make_unicode_tables.py does, each code point is put to the library itself, whose parts follow different versions of
Unicode. What joins the character before it to a grapheme is seen in the normalizer Precompiled, by a character map that
the trainer of SentencePiece makes. Needs the Python packages tokenizers (0.23.3 made the committed file), sentencepiece
(0.2.3) and protobuf. --check writes nothing and fails when the file is another."""

import io
import pathlib
import sys
import tempfile
import unicodedata

import sentencepiece
import tokenizers
from sentencepiece import sentencepiece_model_pb2
from tokenizers import normalizers, pre_tokenizers

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "lib/tok/text_tables.cc"
CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
HANGUL = range(0xAC00, 0xD7A4)
FLAGS = {"mark": 1, "nonspacing": 2, "control": 4, "punctuation": 8, "chinese": 16, "extends": 32, "prepends": 64,
         "stands_alone": 128}


def character_map(rules):
    """The map of a SentencePiece model with `rules`, from code point to character."""
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
        for c, to in sorted(rules.items()):
            file.write(f"{c:X}\t{ord(to):X}\n")
        file.flush()
        model = io.BytesIO()
        words = (ROOT / "examples/data/tinyshakespeare.txt").read_text()[:100000].split("\n")
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(words), model_writer=model, vocab_size=100, minloglevel=2,
            normalization_rule_tsv=file.name, hard_vocab_limit=False)
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model.getvalue())
    return normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap)


def graphemes():
    """What extends the character before it, what prepends to the one behind it, and what stands alone."""
    # A grapheme of less than six bytes becomes what its beginning becomes.
    candidates = {c for c in CODE_POINTS if c not in (0, 0x58, 0x59, 0x61)
                  and (unicodedata.category(chr(c)) in ("Cc", "Cf", "Zl", "Zp", "Cn")
                       or 0xD00 <= c < 0xD80 or 0x11000 <= c < 0x12000) and c not in range(0x20000, 0xE0000)
                  and c < 0xF0000}
    rules = dict.fromkeys(candidates, "Y")
    rules[0x61] = "X"
    normalize = character_map(rules).normalize_str
    extends = {c for c in CODE_POINTS if c > 0 and normalize("a" + chr(c)) == "X"}
    prepends = {c for c in candidates if normalize(chr(c) + "b") == "Y"}
    stands_alone = {c for c in candidates if normalize(chr(c) + "\u0301") != "Y"}
    assert "X\0" == normalize("a\0") and {0x0D, 0x0A, 0x200B} <= stands_alone and 0x200D in extends
    return extends, prepends, stands_alone | {0}


def main():
    nfd, nfkd = normalizers.NFD().normalize_str, normalizers.NFKD().normalize_str
    lower, strip = normalizers.Lowercase().normalize_str, normalizers.StripAccents().normalize_str

    def bert(**flags):
        return normalizers.BertNormalizer(**(dict(clean_text=False, handle_chinese_chars=False, strip_accents=False,
                                                  lowercase=False) | flags)).normalize_str

    strip_bert, clean, chinese = bert(strip_accents=True), bert(clean_text=True), bert(handle_chinese_chars=True)
    cut = pre_tokenizers.BertPreTokenizer().pre_tokenize_str
    words = pre_tokenizers.WhitespaceSplit().pre_tokenize_str
    spaces = {c for c in CODE_POINTS if len(words(f"a{chr(c)}a")) == 2}
    assert spaces == {c for c in CODE_POINTS if chr(c) in "\t\n\x0b\x0c\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000"
                      or 0x2000 <= c <= 0x200A}
    assert spaces == {c for c in CODE_POINTS if normalizers.Strip().normalize_str(chr(c)) == ""}
    cleaned = {c: clean(f"a{chr(c)}b") for c in CODE_POINTS}
    extends, prepends, stands_alone = graphemes()
    members = {
        "mark": {c for c in CODE_POINTS if strip(chr(c)) == ""},
        "nonspacing": {c for c in CODE_POINTS if nfd(chr(c)) == chr(c) and strip_bert(chr(c)) == ""},
        "control": {c for c, text in cleaned.items() if text == "ab"},
        "punctuation": {c for c in CODE_POINTS if len(cut(f"a{chr(c)}a")) == 3},
        "chinese": {c for c in CODE_POINTS if chinese(chr(c)) != chr(c)},
        "extends": extends, "prepends": prepends, "stands_alone": stands_alone,
    }
    assert {c for c, text in cleaned.items() if text == "a b"} == spaces - members["control"]
    flags = [sum(FLAGS[name] for name, m in members.items() if c in m) for c in range(0x110000)]
    ranges, begin = [], 0
    for c in range(1, 0x110001):
        if c == 0x110000 or flags[c] != flags[begin]:
            if flags[begin]:
                ranges.append((begin, c - 1, flags[begin]))
            begin = c
    assert [ord(x) for x in strip_bert("\u00e9")] == [0x65]

    compatible = {c: nfkd(chr(c)) for c in CODE_POINTS if c not in HANGUL and nfkd(chr(c)) != nfd(chr(c))}
    lowered = {c: lower(chr(c)) for c in CODE_POINTS if lower(chr(c)) != chr(c)}
    lines = []

    def table(header, rows):
        lines.append(header)
        line = "   "
        for row in rows:
            if len(line) + len(row) + 2 > 110:
                lines.append(line)
                line = "   "
            line += f" {row},"
        lines.extend([line, "};", ""])

    def mappings(name, of):
        texts, pool = [], []
        for c, text in sorted(of.items()):
            texts.append((c, len(pool), len(text)))
            pool += [ord(x) for x in text]
        table(f"const Mapping k{name}[] = {{", ("{%#x,%d,%d}" % row for row in texts))
        lines.append(f"const size_t k{name}Count = sizeof(k{name}) / sizeof(k{name}[0]);\n")
        table(f"const uint32_t k{name}Texts[] = {{", (f"{x:#x}" for x in pool))

    lines += [
        "// Made by scripts/make_text_tables.py; do not edit.",
        f"// Asked of the Python package tokenizers {tokenizers.__version__}. Derived from the Unicode Character",
        "// Database, Copyright Unicode, Inc.; see lib/tok/NOTICE.",
        '#include "lib/tok/text_tables.h"',
        "",
        "namespace trainwright::unicode {",
        "",
        "// clang-format off",
    ]
    table("const TextRange kTextRanges[] = {", (f"{{{a:#x},{b:#x},{v}}}" for a, b, v in ranges))
    lines.append("const size_t kTextRangeCount = sizeof(kTextRanges) / sizeof(kTextRanges[0]);\n")
    mappings("Compatible", compatible)
    mappings("Lowered", lowered)
    lines[-1:] = ["// clang-format on", "", "}  // namespace trainwright::unicode", ""]

    text = "\n".join(lines)
    if "--check" in sys.argv[1:]:
        if OUTPUT.read_text() != text:
            sys.exit(f"{OUTPUT}: is not what this script writes with tokenizers {tokenizers.__version__}")
        return
    OUTPUT.write_text(text)


main()
