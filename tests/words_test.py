#!/usr/bin/env python3
"""Checks that what users and other programmers read has the field's words: none of those that words.tsv avoids.

usage: words_test.py SOURCE_DIR

Read are the comments of public headers (lib/**/*.h, tools/*.h), string literals of lib/ and tools/ that have a space
(messages, the help of options), the prose of help and man pages (tools/text, man/*.5, man/*.7), README.md and lib/**/*.md. A
phrase is found across line breaks, too. words.tsv has on each line, between tabs: a regular expression, the word to use, an
example that the expression finds, and an idiom that it leaves alone (or -). Lines of the glossary that begin with "Not:" list
avoided words and are not read.
man/*.1 is generated from what is read here.
"""
import bisect
import pathlib
import re
import sys
import unittest

SOURCE = pathlib.Path(sys.argv.pop(1))
sys.path.insert(0, str(SOURCE / "scripts"))
import cpp_scan  # noqa: E402

TABLE = pathlib.Path(__file__).resolve().parent / "words.tsv"


def rules():
    """(compiled expression, word to use, example, idiom) of each line."""
    lines = [line for line in TABLE.read_text().splitlines() if line and not line.startswith("#")]
    for pattern, use, example, idiom in (line.split("\t") for line in lines):
        yield re.compile(pattern, re.IGNORECASE), use, example, idiom


class Passage:
    """Lines that are read as one, blanks between them."""

    def __init__(self):
        self.text, self.starts, self.lines = "", [], []

    def add(self, line, text):
        self.starts.append(len(self.text))
        self.lines.append(line)
        self.text += re.sub(r"\s+", " ", text).strip() + " "

    def line_at(self, offset):
        return self.lines[bisect.bisect_right(self.starts, offset) - 1]


def passages(lines):
    """Of (line number, text): lines that follow each other make one; a blank one ends it."""
    passage, last = None, None
    for line, text in lines:
        if passage is None or line > last + 1:
            if passage:
                yield passage
            passage = Passage()
        if text.strip():
            passage.add(line, text)
            last = line
    if passage:
        yield passage


def prose(text):
    lines = ((number, line) for number, line in enumerate(text.splitlines(), 1) if not line.startswith("Not:"))
    return passages((number, line) for number, line in lines if line.strip())


def comments(text):
    """Lines of comments that follow each other are one; one after code starts a new one."""
    groups, line = [[]], 1
    for match in cpp_scan.TOKEN.finditer(text):
        if match.lastgroup == "comment":
            start = text.rfind("\n", 0, match.start()) + 1
            if text[start:match.start()].strip():
                groups.append([])
            for number, part in enumerate(match[0].splitlines(), line):
                groups[-1].append((number, re.sub(r"^\s*(///?<?|/\*+|\*/?)", "", part)))
        line += match[0].count("\n")
    for group in groups:
        yield from passages(group)


def messages(text):
    """Literals with a space; pieces that the compiler joins, or that + joins with nothing between, are one."""
    passage = None
    for token in [*cpp_scan.tokens_of(text), None]:
        if token is not None and token.kind in ("string", "raw"):
            passage = passage or Passage()
            for number, part in enumerate(token.text.strip('"').split("\n"), token.line):
                passage.starts.append(len(passage.text))
                passage.lines.append(number)
                passage.text += part.replace("\\n", " ").replace("\\\"", '"')
        elif passage:
            if " " in passage.text.strip():
                yield passage
            passage = None


def texts_of(source):
    """(path, its passages) of all that is read."""
    for pattern in ("tools/text/*.txt", "man/*.5", "man/*.7", "README.md", "lib/**/*.md"):
        for path in sorted(source.glob(pattern)):
            yield path, prose(path.read_text())
    for top in ("lib", "tools"):
        for path in sorted((source / top).rglob("*")):
            if path.suffix == ".h":
                yield path, comments(path.read_text())
            if path.suffix in (".h", ".cc"):
                yield path, messages(path.read_text())


def found_in(source):
    table = list(rules())
    for path, of_path in texts_of(source):
        for passage in of_path:
            for expression, use, _, _ in table:
                for match in expression.finditer(passage.text):
                    line = passage.line_at(match.start())
                    yield f"{path.relative_to(source)}:{line}: \"{match[0]}\": use {use}"


class WordsTest(unittest.TestCase):
    maxDiff = None

    def test_the_words_are_those_of_the_field(self):
        found = list(found_in(SOURCE))
        self.assertEqual(found, [], "\n" + "\n".join(found))

    def test_each_rule_finds_its_example_and_leaves_its_idiom_alone(self):
        for expression, use, example, idiom in rules():
            self.assertIsNotNone(expression.search(example), f"{expression.pattern} does not find \"{example}\"")
            self.assertIsNone(expression.search(idiom), f"{expression.pattern} finds \"{idiom}\"")
            self.assertTrue(use)

    def test_the_glossary_is_sorted(self):
        terms = re.findall(r"^\.TP\n\.B (.*)$", (SOURCE / "man/trainwright-glossary.7").read_text(), re.MULTILINE)
        self.assertGreater(len(terms), 50)
        self.assertEqual(terms, sorted(terms, key=str.casefold))

    def test_a_word_is_found_in_each_kind_of_text(self):
        header = "/// The type is\n/// short, of a short\n/// type.\nint a;  ///< of products of bf16\n"
        self.assertEqual([p.text for p in comments(header)], ["The type is short, of a short type. ", "of products of bf16 "])
        source = 'Warn("rounded to a short "\n     "type");\nint b = Key("short_type");\n'
        self.assertEqual([(p.text, p.line_at(23)) for p in messages(source)], [("rounded to a short type", 2)])
        page = "one\ntwo\n\nthree\nNot: four\n"
        self.assertEqual([p.text for p in prose(page)], ["one two ", "three "])
        read = {path.suffix for path, _ in texts_of(SOURCE)}
        self.assertEqual(read, {".txt", ".5", ".7", ".md", ".h", ".cc"})


if __name__ == "__main__":
    unittest.main()
