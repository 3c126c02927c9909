#!/usr/bin/env python3
"""The pages on adding a family, an objective or an optimizer name what there is.

usage: pages_test.py SOURCE_DIR

Of what stands in `backticks` on each page: a path exists, in the source tree or beside the page, and a test case or suite
is one of tests/; every other name stands somewhere in lib/, tools/ or tests/.
"""
import itertools
import pathlib
import re
import sys
import unittest

SOURCE = pathlib.Path(sys.argv.pop(1))
PAGES = sorted((SOURCE / "lib").rglob("adding_a*.md"))
CODE = {".h", ".cc", ".cu", ".cuh", ".py", ".sh", ".txt"}
TEST = re.compile(r"\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)")
PATH = re.compile(r"(?:lib|tools|tests|scripts|man|examples)/[\w./{},*-]*|[\w{},*-]+\.(?:h|cc|cu|py|sh|md|txt|\{h,cc\})")


def quoted(text):
    """What stands in backticks, blocks of code left out."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M))


def unbraced(path):
    """The paths that name{a,b} stands for."""
    parts = re.split(r"\{([^}]*)\}", path)
    choices = [part.split(",") if i % 2 else [part] for i, part in enumerate(parts)]
    return ["".join(choice) for choice in itertools.product(*choices)]


class Names:
    """What the source tree has."""

    def __init__(self):
        self.suites, self.cases, self.words = set(), set(), set()
        for top in ("lib", "tools", "tests", "scripts"):
            for path in (SOURCE / top).rglob("*"):
                if path.suffix not in CODE or path.name == pathlib.Path(__file__).name:
                    continue
                text = path.read_text(errors="replace")
                self.words.update(re.findall(r"\w+", text))
                for suite, case in TEST.findall(text):
                    self.suites.add(suite)
                    self.cases.add(f"{suite}.{case}")

    def problem_of(self, name, page):
        """What is wrong with a name in backticks; none: nothing."""
        if "<" in name:
            return None  # for the reader to fill in
        if PATH.fullmatch(name):
            missing = [path for path in unbraced(name)
                       if not any(any(folder.glob(path.rstrip("/"))) for folder in (SOURCE, page.parent))]
            return f"{', '.join(missing)} does not exist" if missing else None
        if re.fullmatch(r"\w+Test\.\w+", name):
            return None if name in self.cases else "is no test case"
        if re.fullmatch(r"[A-Z]\w*Test", name):
            return None if name in self.suites else "is no suite of tests"
        unknown = [word for word in re.findall(r"[A-Za-z_]\w+", name) if word not in self.words]
        return f"{', '.join(unknown)} stands nowhere in the code" if unknown else None


class PagesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.names = Names()

    def test_there_is_a_page_for_each(self):
        self.assertEqual([page.stem for page in PAGES],
                         ["adding_a_family", "adding_an_objective", "adding_an_optimizer"])

    def test_what_they_name_exists(self):
        for page in PAGES:
            names = quoted(page.read_text())
            self.assertGreater(len(names), 10, page)
            problems = [f"`{name}`: {problem}" for name in names if (problem := self.names.problem_of(name, page))]
            self.assertEqual(problems, [], page)

    def test_what_is_missing_is_found(self):
        for name in ("lib/model/no_such.{h,cc}", "no_such.h", "ToyFamilyTest.NoSuchCase", "NoSuchTest", "NoSuchName()"):
            self.assertIsNotNone(self.names.problem_of(name, PAGES[0]), name)


if __name__ == "__main__":
    unittest.main()
