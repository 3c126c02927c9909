#!/usr/bin/env python3
"""Checks that every C++ and CUDA file is laid out by clang-format 14 and that doc comments keep their form.

usage: format_test.py SOURCE_DIR [CLANG_FORMAT]

Refuses: a file that clang-format would change; another version than 14, whose layout differs; \\param, \\returns and
\\throws behind other words on their line; lines wider than the column limit, which clang-format leaves where they are
comments or literals, but for lines of raw literals outside tools/; and prose in literals of tools/, which has its place
in tools/text.
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))
import cpp_scan  # noqa: E402

VERSION = "14."
COLUMN_LIMIT = 110
TAG_BEHIND_WORDS = re.compile(r"//.*\S.*\\(param|returns|throws)\b")
TAG_FIRST = re.compile(r"\s*///\s*\\(param|returns|throws)\b")
LONGEST_LITERAL = 550  # characters, pieces that the compiler joins together: the help of an option is shorter


def files_of(source_dir):
    return [
        path
        for top in ("lib", "tools", "tests")
        for path in sorted((source_dir / top).rglob("*"))
        if path.suffix in (".h", ".cc", ".cu", ".cuh")
    ]


def line_problems(path, name):
    text = path.read_text()
    tokens = cpp_scan.tokens_of(text)
    is_tool = name.startswith("tools/")
    raw_lines = {number for token in tokens if token.kind == "raw" for number in range(token.line, token.end_line + 1)}
    for number, line in enumerate(text.splitlines(), 1):
        first = TAG_FIRST.match(line)
        rest = line[first.end():] if first else line
        if TAG_BEHIND_WORDS.search(line if not first else "//x" + rest):
            yield f"{name}:{number}: \\param, \\returns and \\throws begin a line of their own"
        if len(line) > COLUMN_LIMIT and (is_tool or number not in raw_lines):
            yield f"{name}:{number}: more than {COLUMN_LIMIT} columns"
    if is_tool:
        for number, size in literals_of(tokens):
            if size > LONGEST_LITERAL:
                yield f"{name}:{number}: a literal of {size} characters: prose has its place in tools/text"


def literals_of(tokens):
    """Line and length of each string literal, the pieces of one together."""
    before = None
    for token in [*tokens, None]:
        is_literal = token is not None and token.kind in ("string", "raw")
        if is_literal:
            size = len(token.text) - 2
            before = (before[0], before[1] + size) if before else (token.line, size)
        elif before:
            yield before
            before = None


def layout_problems(clang_format, source_dir, names):
    """By one process, for to start one takes longer than to lay out a file."""
    result = subprocess.run([clang_format, "--style=file", "--dry-run", "--Werror", "--ferror-limit=1", *names],
                            cwd=source_dir, capture_output=True, text=True)
    misfits = [name for name in names if f"\n{name}:" in "\n" + result.stderr]
    if result.returncode != 0 and not misfits:
        return [f"{clang_format} ended with {result.returncode}: {result.stderr}"]
    return [f"{name}: not as clang-format has it: clang-format-14 -i {name}" for name in misfits]


def main():
    source_dir = pathlib.Path(sys.argv[1])
    clang_format = sys.argv[2] if len(sys.argv) > 2 else "clang-format-14"
    version = subprocess.run([clang_format, "--version"], capture_output=True, text=True, check=True).stdout
    if not re.search(r"version " + re.escape(VERSION), version):
        print(f"{version.strip()}: version {VERSION}x is needed")
        return 1
    files = files_of(source_dir)
    names = [str(path.relative_to(source_dir)) for path in files]
    problems = [problem for path, name in zip(files, names) for problem in line_problems(path, name)]
    shares = [share for share in (names[first::os.cpu_count()] for first in range(os.cpu_count())) if share]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for found in pool.map(layout_problems, [clang_format] * len(shares), [source_dir] * len(shares), shares):
            problems += found
    if not files:
        problems.append("no file was checked: wrong folder?")
    print("\n".join(problems) if problems else f"{len(files)} files")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
