#!/usr/bin/env python3
"""Counts the test cases of a run of CTest, of which one test may be a process with many cases.

usage: test_report.py BUILD_DIR

Reads BUILD_DIR/junit.xml and, for the programs of GoogleTest, what tests/GtestSuites.cmake had written: the list of their
cases and each process's log. Prints every failed case; a case that a process has not come to, because it died or ran out
of time, has failed. Prints every skipped case, too, with what its test said, but for those that want a GPU: these are counted.
Writes BUILD_DIR/test_cases.txt, a line a case: passed, failed or skipped, and its name. The last line is
"PASSED FAILED GPU_SKIPPED": how many cases, the last those that were skipped for want of a GPU.
"""
import pathlib
import sys
import xml.etree.ElementTree

GPU = "/cuda_"  # in the name of a case that runs on a GPU


def cases_of(folder):
    """The cases of one program by the names of their processes' logs: {suite or case: [case]}."""
    suites, suite = {}, None
    for line in (folder / "cases.txt").read_text().splitlines():
        if line.startswith("  "):
            suites[suite].append(f"{suite}.{line.strip()}")
        elif line.endswith("."):
            suite = line[:-1]
            suites[suite] = []
    return suites


def read_log(path):
    """The last word about each case: planned, began, passed, failed or skipped."""
    state = {}
    if path.exists():
        for line in path.read_text().splitlines():
            what, _, case = line.partition(" ")
            state[case] = what
    return state


def said_by(test):
    """Why a test was skipped: of its output the message of GoogleTest's one skipped case, or else the last line."""
    lines = [line.strip() for line in (test.findtext("system-out") or "").splitlines() if line.strip()]
    for line, message in zip(lines, lines[1:]):
        if line.endswith(": Skipped"):
            return message
    return lines[-1] if lines else ""


def results_of_process(name, failed, folder, suites, tests):
    """(case, result, note) of each case of the process that ran as the test `name`; `tests` are the names of all."""
    prefix, _, process = name.partition("/")
    state = read_log(folder / (process.replace("/", "-") + ".log"))
    planned = [process] if process not in suites else [case for case in suites[process] if f"{prefix}/{case}" not in tests]
    settled = {"passed", "failed", "skipped"}
    for case in planned:
        result = state.get(case, "planned")
        note = said_by(tests[name]) if result == "skipped" and len(planned) == 1 else ""
        note = note if result in settled else "did not end" if result == "began" else "was not run"
        yield f"{prefix}/{case}", result if result in settled else "failed", note
    if failed and all(state.get(case) in {"passed", "skipped"} for case in planned):
        yield name, "failed", "the process failed outside of its cases"


def results_of(build_dir):
    folders = {folder.name: folder for folder in (build_dir / "tests/suites").glob("*/") if (folder / "cases.txt").exists()}
    suites = {prefix: cases_of(folder) for prefix, folder in folders.items()}
    tests = {test.get("name"): test for test in xml.etree.ElementTree.parse(build_dir / "junit.xml").iter("testcase")}
    for name, test in tests.items():
        prefix, _, process = name.partition("/")
        failed = test.find("failure") is not None or test.get("status") == "fail"
        known = suites.get(prefix, {})
        if process in known or any(process in cases for cases in known.values()):
            yield from results_of_process(name, failed, folders[prefix], known, tests)
        else:
            skipped = test.find("skipped") is not None
            yield name, "failed" if failed else "skipped" if skipped else "passed", said_by(test) if skipped else ""


def main():
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__.strip())
        return 0 if sys.argv[1:] in (["-h"], ["--help"]) else 2
    build_dir = pathlib.Path(sys.argv[1])
    results = sorted(results_of(build_dir))
    (build_dir / "test_cases.txt").write_text("".join(f"{result} {case}\n" for case, result, _ in results))
    for case, result, note in results:
        if result == "failed" or (result == "skipped" and GPU not in case):
            print(f"{result.upper()} {case}" + (f" ({note})" if note else ""))
    count = {result: sum(r == result for _, r, _ in results) for result in ("passed", "failed")}
    gpu = sum(result == "skipped" and GPU in case for case, result, _ in results)
    print(count["passed"], count["failed"], gpu)
    return 0


if __name__ == "__main__":
    sys.exit(main())
