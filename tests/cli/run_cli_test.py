#!/usr/bin/env python3
"""Runs one test of the command line: NAME.sh, against the files beside it.

  NAME.stdout, NAME.stderr             exactly this output
  NAME.stdout.glob, NAME.stderr.glob   line by line; * stands for any text, a line ... for any lines
  NAME.exit                            the exit status; without it 0

An output without a file is not looked at. A script that cannot run here says why and exits with 77, of which its outputs are
shown and the exit status is 77, too: the test is skipped. The script runs by bash -euo pipefail in a new empty folder, with the
built tools first in PATH, the functions of functions.sh and these variables:

  TRAINWRIGHT_SOURCE_DIR   the source tree
  BUILT_TOOLS              the names of the tools of this build

--update writes the exact files and NAME.exit anew from what the script gave, where they exist already (create an
empty one first); globs are edited by hand.
"""
import argparse
import difflib
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

TIME_LIMIT_S = 580
SKIPPED = 77
FUNCTIONS = 'source "$TRAINWRIGHT_SOURCE_DIR/tests/cli/functions.sh"'


def glob_to_regex(text):
    lines = []
    for line in text.splitlines():
        if line == "...":
            lines.append(r"(?:.*\n)*?")
        else:
            lines.append(".*".join(re.escape(part) for part in line.split("*")) + r"\n")
    return re.compile("".join(lines))


def check_stream(name, path, text, update):
    exact, pattern = path.with_suffix("." + name), path.with_suffix("." + name + ".glob")
    if exact.exists():
        if update:
            exact.write_text(text)
        expected = exact.read_text()
        if text != expected:
            yield "".join(difflib.unified_diff(expected.splitlines(True), text.splitlines(True), str(exact), "got"))
    if pattern.exists() and not glob_to_regex(pattern.read_text()).fullmatch(text):
        yield f"{name} does not match {pattern}:\n{text}"


def environment(arguments):
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith("TRAINWRIGHT_") or name == "TRAINWRIGHT_TEST_DATA"}
    source_dir = pathlib.Path(__file__).resolve().parents[2]
    kept.update(PATH=f"{arguments.bin.resolve()}:{kept['PATH']}", LC_ALL="C.UTF-8", TERM="dumb", BUILT_TOOLS=arguments.tools,
                TRAINWRIGHT_SOURCE_DIR=str(source_dir), TRAINWRIGHT_KERNELS="usual")  # no clock decides bits
    return kept


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("script", type=pathlib.Path)
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of the built tools")
    parser.add_argument("--tools", default="", help="names of the built tools")
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()
    path = arguments.script.resolve()

    with tempfile.TemporaryDirectory(prefix="trainwright-cli-") as folder:
        # A tool that runs away must fill neither the disk nor the night. Python ignores SIGPIPE; a shell does not.
        process = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", f'ulimit -f 4000000; {FUNCTIONS}; source "$1"', str(path), str(path)], cwd=folder,
            env=environment(arguments), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL))
        try:
            output = process.communicate(timeout=TIME_LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            print(f"did not end within {TIME_LIMIT_S} s")
            return 1
    stdout, stderr = (stream.decode("utf-8", "replace") for stream in output)
    status = process.returncode if process.returncode >= 0 else 128 - process.returncode
    if status == SKIPPED:
        print(stdout + stderr, end="")
        return SKIPPED

    problems = [*check_stream("stdout", path, stdout, arguments.update), *check_stream("stderr", path, stderr, arguments.update)]
    exit_file = path.with_suffix(".exit")
    if arguments.update and exit_file.exists():
        exit_file.write_text(f"{status}\n")
    expected = int(exit_file.read_text()) if exit_file.exists() else 0
    if status != expected:
        problems.append(f"exit status {status}, not {expected}\n--- stdout\n{stdout[-4000:]}\n--- stderr\n{stderr[-4000:]}")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
