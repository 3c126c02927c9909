#!/usr/bin/env python3
"""The newest page of what shows everyday use names each line and only tests and files that there are.

usage: proof_test.py SOURCE_DIR
"""
import pathlib
import re
import sys
import unittest

SOURCE = pathlib.Path(sys.argv.pop(1))
PAGE = max((SOURCE / "scripts/compare/results").glob("*-everyday-proof.md"))
LINES = [f"A{n}" for n in (1, 2, 3)] + [f"B{n}" for n in (4, 5, 6, 7, 8)] + [f"C{n}" for n in (9, 10, 11)]
TESTS = set((SOURCE / "tests/golden/test_names.txt").read_text(encoding="utf-8").splitlines())


def rows(text):
    """The cells of the rows of the tables, without their heads."""
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")]
    return [row for row in cells if row[0] not in ("line", "what")]


def named(cell):
    return [name for name in re.findall(r"`([^`]+)`", cell) if "/" in name]


def is_there(name):
    return name in TESTS or (SOURCE / name).is_file()


class ProofTest(unittest.TestCase):
    def setUp(self):
        self.rows = rows(PAGE.read_text(encoding="utf-8"))

    def test_every_line_has_a_row_in_its_order(self):
        found = [row[0] for row in self.rows if len(row) == 3]
        self.assertEqual(list(dict.fromkeys(found)), LINES)
        self.assertEqual(found, sorted(found, key=LINES.index))

    def test_every_row_names_what_there_is(self):
        for row in self.rows:
            names = named(row[-1])
            self.assertTrue(names, row)
            self.assertEqual([name for name in names if not is_there(name)], [], row)

    def test_what_is_not_there_is_found(self):
        for name in ("cli/train/no_such_test", "scripts/no_such_file.sh"):
            self.assertFalse(is_there(name), name)


if __name__ == "__main__":
    unittest.main()
