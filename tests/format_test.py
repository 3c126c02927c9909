#!/usr/bin/env python3
"""Checks that every C++ and CUDA file is laid out by clang-format 14 and that doc comments keep their form.

usage: format_test.py SOURCE_DIR [CLANG_FORMAT]

Refuses: a file that clang-format would change; another version than 14, whose layout differs; \\param, \\returns and
\\throws behind other words on their line; comments wider than the column limit, which clang-format leaves alone.
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

VERSION = "14."
COLUMN_LIMIT = 110
TAG_BEHIND_WORDS = re.compile(r"//.*\S.*\\(param|returns|throws)\b")
TAG_FIRST = re.compile(r"\s*///\s*\\(param|returns|throws)\b")
COMMENT = re.compile(r"\s*//")


def files_of(source_dir):
    return [
        path
        for top in ("lib", "tools", "tests")
        for path in sorted((source_dir / top).rglob("*"))
        if path.suffix in (".h", ".cc", ".cu", ".cuh")
    ]


def comment_problems(path, name):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        first = TAG_FIRST.match(line)
        rest = line[first.end():] if first else line
        if TAG_BEHIND_WORDS.search(line if not first else "//x" + rest):
            yield f"{name}:{number}: \\param, \\returns and \\throws begin a line of their own"
        if COMMENT.match(line) and len(line) > COLUMN_LIMIT:
            yield f"{name}:{number}: a comment of more than {COLUMN_LIMIT} columns"


def layout_problem(clang_format, path, name):
    formatted = subprocess.run([clang_format, "--style=file", str(path)], capture_output=True, check=True).stdout
    if formatted != path.read_bytes():
        return f"{name}: not as clang-format has it: clang-format-14 -i {name}"
    return None


def main():
    source_dir = pathlib.Path(sys.argv[1])
    clang_format = sys.argv[2] if len(sys.argv) > 2 else "clang-format-14"
    version = subprocess.run([clang_format, "--version"], capture_output=True, text=True, check=True).stdout
    if not re.search(r"version " + re.escape(VERSION), version):
        print(f"{version.strip()}: version {VERSION}x is needed")
        return 1
    files = files_of(source_dir)
    names = [str(path.relative_to(source_dir)) for path in files]
    problems = [problem for path, name in zip(files, names) for problem in comment_problems(path, name)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        problems += filter(None, pool.map(layout_problem, [clang_format] * len(files), files, names))
    if not files:
        problems.append("no file was checked: wrong folder?")
    print("\n".join(problems) if problems else f"{len(files)} files")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
