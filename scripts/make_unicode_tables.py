#!/usr/bin/env python3
"""Writes lib/tok/unicode_tables.cc: what Hugging Face tokenizers takes for a letter, number, space, digit or
word character, and how it normalises to NFC.

  make_unicode_tables.py [--check]

Byte-level BPE tokenizers cut text by these classes, so they must be those of the library and no newer ones.
The library's parts follow different versions of Unicode and show none of them; so each code point is put to
the library itself. Needs the Python package tokenizers (0.23.3 made the committed file). --check writes
nothing and fails when the file is another."""

import pathlib
import sys
import unicodedata

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

OUTPUT = pathlib.Path(__file__).resolve().parent.parent / "lib/tok/unicode_tables.cc"
CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
HANGUL = range(0xAC00, 0xD7A4)
FLAGS = {"letter": 1, "number": 2, "space": 4, "digit": 8, "word": 16, "capital": 64, "small": 128}


def cut_out(pre_tokenizer):
    """The characters that a pre-tokenizer takes out of their surroundings."""
    return {c for c in CODE_POINTS if len(pre_tokenizer.pre_tokenize_str(f"\0{chr(c)}\0")) == 3}


def classes():
    def matching(pattern):
        return cut_out(pre_tokenizers.Split(Regex(pattern), "isolated"))

    tokenizer = Tokenizer(models.BPE(vocab={"a": 0}, merges=[]))
    tokenizer.add_tokens([AddedToken("<w>", single_word=True, normalized=False),
                          AddedToken("<s>", rstrip=True, normalized=False)])
    members = {
        "letter": matching(r"\p{L}"),
        "number": matching(r"\p{N}"),
        "space": matching(r"\s"),
        "digit": cut_out(pre_tokenizers.Digits(individual_digits=True)),
        "capital": matching(r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"),
        "small": matching(r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"),
        "word": {c for c in CODE_POINTS if "<w>" not in tokenizer.encode("<w>" + chr(c)).tokens},
    }
    stripped = {c for c in CODE_POINTS if tokenizer.encode(f"<s>{chr(c)}a").offsets[0][1] != 3}
    assert stripped == members["space"], "added tokens strip other characters than \\s"
    for c in range(0xD800, 0xE000):
        assert all(c not in m for m in members.values())
    return [sum(FLAGS[name] for name, m in members.items() if c in m) for c in range(0x110000)]


def ranges(values):
    begin = 0
    for c in range(1, len(values) + 1):
        if c == len(values) or values[c] != values[begin]:
            if values[begin]:
                yield begin, c - 1, values[begin]
            begin = c


def combining_classes(nfd):
    """A mark moves before every mark of a higher class: found by putting it beside one of each class."""
    of_class = {}
    for c in CODE_POINTS:
        k = unicodedata.combining(chr(c))
        if k and nfd(chr(c)) == chr(c):
            of_class.setdefault(k, []).append(chr(c))

    def moves(first, second):
        return nfd("a" + first + second) != "a" + first + second

    present = {}
    for k, marks in sorted(of_class.items()):
        # Marks newer than the library have no class there.
        known = [m for m in marks if moves(m, "\u0334") or moves("\u05b0", m)]
        if known:
            present[k] = known[0]
    values = [0] * 0x110000
    for c in CODE_POINTS:
        mark = chr(c)
        if nfd(mark) != mark or not (moves(mark, "\u0334") or moves("\u05b0", mark)):
            continue
        below = [k for k, other in present.items() if moves(mark, other)]
        above = [k for k, other in present.items() if moves(other, mark)]
        same = [k for k in present if k not in below and k not in above]
        assert len(same) == 1, f"U+{c:04X}: no single class among {same}"
        values[c] = same[0]
    return values


def main():
    nfc, nfd = normalizers.NFC().normalize_str, normalizers.NFD().normalize_str
    decompositions, compositions = [], []
    for c in CODE_POINTS:
        if c in HANGUL:
            continue
        full = nfd(chr(c))
        if full == chr(c):
            continue
        assert 1 <= len(full) <= 4
        decompositions.append((c, [ord(x) for x in full]))
        if nfc(chr(c)) == chr(c):
            first = nfc(full[:-1])
            assert len(first) == 1 and nfc(first + full[-1]) == chr(c)
            compositions.append((ord(first), ord(full[-1]), c))

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

    lines += [
        "// Made by scripts/make_unicode_tables.py; do not edit.",
        f"// Asked of the Python package tokenizers {tokenizers.__version__}. Derived from the Unicode Character",
        "// Database, Copyright Unicode, Inc.; see lib/tok/NOTICE.",
        '#include "lib/tok/unicode_tables.h"',
        "",
        "namespace trainwright::unicode {",
        "",
        "// clang-format off",
    ]
    table("const ClassRange kClassRanges[] = {", (f"{{{a:#x},{b:#x},{v}}}" for a, b, v in ranges(classes())))
    lines.append("const size_t kClassRangeCount = sizeof(kClassRanges) / sizeof(kClassRanges[0]);\n")
    table("const ClassRange kCombiningClasses[] = {",
          (f"{{{a:#x},{b:#x},{v}}}" for a, b, v in ranges(combining_classes(nfd))))
    lines.append("const size_t kCombiningClassCount = sizeof(kCombiningClasses) / sizeof(kCombiningClasses[0]);\n")
    table("const Decomposition kDecompositions[] = {",
          ("{%#x,{%s}}" % (c, ",".join(f"{x:#x}" for x in to)) for c, to in decompositions))
    lines.append("const size_t kDecompositionCount = sizeof(kDecompositions) / sizeof(kDecompositions[0]);\n")
    table("const Composition kCompositions[] = {",
          (f"{{{a:#x},{b:#x},{c:#x}}}" for a, b, c in sorted(compositions)))
    lines.append("const size_t kCompositionCount = sizeof(kCompositions) / sizeof(kCompositions[0]);")
    lines += ["// clang-format on", "", "}  // namespace trainwright::unicode", ""]

    text = "\n".join(lines)
    if "--check" in sys.argv[1:]:
        if OUTPUT.read_text() != text:
            sys.exit(f"{OUTPUT}: is not what this script writes with tokenizers {tokenizers.__version__}")
        return
    OUTPUT.write_text(text)


main()
