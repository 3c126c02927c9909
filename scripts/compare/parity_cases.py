"""What scripts share that hold small trainings against PyTorch's, case by case: their arguments, a process a case, the report."""
import argparse
import concurrent.futures
import datetime
import json
import multiprocessing
import os
import pathlib
import sys

from train_runs import ROOT


def arguments(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", nargs="?", type=pathlib.Path)
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="cases at once, of one thread each")
    parser.add_argument("--only", default="")
    return parser


def row_of(compare, case, parameters):
    """Of one case. One that a side refuses ends no other."""
    try:
        return {"case": case} | compare(*parameters)
    except Exception as error:  # noqa: BLE001: whatever it is, it is told
        return {"case": case, "error": f"{type(error).__name__}: {error}", "holds": False}


def compare_all(compare, cases, jobs):
    """The rows of all cases, {name: parameters of compare}, each told as soon as it and those before it are there."""
    rows = []
    with concurrent.futures.ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        for future in [pool.submit(row_of, compare, *case) for case in cases.items()]:
            rows.append(future.result())
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    return rows


def report(title, introduction, rows, columns):
    """columns: {heading: text of a row's cell}, between a case's name and whether it holds."""
    lines = [f"# {title}, {datetime.date.today()}", "", f"{sum(row['holds'] for row in rows)} of {len(rows)} cases hold.", "",
             introduction, "", f"| case | {' | '.join(columns)} | |", "|---" * (len(columns) + 2) + "|"]
    for row in rows:
        if "error" in row:
            cells = [""] * (len(columns) - 1) + [" ".join(row["error"].split())]
        else:
            cells = [cell(row) for cell in columns.values()]
        lines.append(f"| {' | '.join([row['case'], *cells, 'holds' if row['holds'] else 'FAILS'])} |")
    return "\n".join(lines) + "\n"


def exit_status(rows):
    return 0 if rows and all(row["holds"] for row in rows) else 1
