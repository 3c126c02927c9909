#!/usr/bin/env python3
"""Runs the comparisons behind the claims of claims.tsv and writes one table of them; see all.sh.

usage: claims.py [--deadline MINUTES] [--spent SECONDS] [--only NAME,...] [--results DIR] [--again] [--list] [--table] [--quick]

claims.tsv has, between tabs, two kinds of lines. `run NAME MINUTES COMMAND`: a comparison; its command gets OUT as its last
word, and MINUTES is what it takes on two quiet processors; half as much more is the most that it gets at once. `claim NAME
RUN COMPARISON ASPECT OWN PEER GOAL FILE PHRASE`: a ratio of that run's OUT.json, - where it is the usual one, the goal for
it, one number or one a maker of processors (intel:1.3,amd:1.8), and the phrase of a file that makes the claim. In commands
{data}, {python} and {bin} stand for the folder of data, the Python that has the peers, and the folder of built programs.

DIR/KIND/NAME.json holds one claim on one kind of processor. A claim that has its file is not measured again, unless its line
names another comparison by now, or a mode of its peer failed, which is tried again; another goal judges the figures that are
there. The OUT.json of its run, from which an interrupted run goes on, is below build/compare/claims/KIND. --again removes both
first, so that afterwards the command without it goes on. --spent is how much of the deadline had passed when this began. --quick
runs all below build/compare/claims-quick, from nothing, and writes no result.
"""
import argparse
import collections
import dataclasses
import datetime
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

import protocol
from machine import Machine

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = pathlib.Path(__file__).resolve().parent / "claims.tsv"
# Makers whose processors the table always has a column for.
MAKERS = ("intel", "amd")
QUICK = "--rounds 1 --tries 1"
# Of a run's minutes: the most that it gets at once, so that a noisy one leaves time to the others.
MOST_OF_MINUTES = 1.5


@dataclasses.dataclass(frozen=True)
class Run:
    name: str
    minutes: float
    command: str


@dataclasses.dataclass(frozen=True)
class Claim:
    name: str
    run: str
    comparison: str
    aspect: str
    own: str | None
    peer: str | None
    goals: dict  # {maker of processors, or "" for all: ratio}
    file: str
    phrase: str

    def goal(self, kind):
        """On a kind of processor; None where nobody has set one."""
        return self.goals.get(kind.split("-")[0], self.goals.get(""))

    def goal_text(self):
        return ", ".join(f"{maker} {goal:g}".strip() for maker, goal in self.goals.items())

    def source(self):
        """FILE:LINE of the phrase."""
        for number, line in enumerate((ROOT / self.file).read_text().splitlines(), 1):
            if self.phrase in line:
                return f"{self.file}:{number}"
        raise ValueError(f"{TABLE.name}: {self.name}: {self.file} does not say \"{self.phrase}\"")


def goals_in(text):
    """{"": 2.0} of 2, {"intel": 1.3, "amd": 1.8} of intel:1.3,amd:1.8."""
    if ":" not in text:
        return {"": float(text)}
    goals = {maker: float(goal) for maker, _, goal in (part.partition(":") for part in text.split(","))}
    if not set(goals) <= set(MAKERS):
        raise ValueError(f"{text}: makers are {' and '.join(MAKERS)}")
    return goals


def read_table(text):
    """({name: Run}, {name: Claim})"""
    runs, claims = {}, {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        kind, name, *fields = line.split("\t")
        if kind == "run" and len(fields) == 2 and name not in runs:
            runs[name] = Run(name, float(fields[0]), fields[1])
        elif kind == "claim" and len(fields) == 8 and name not in claims and fields[0] in runs:
            run, comparison, aspect, own, peer, goal, file, phrase = fields
            own, peer, aspect = (None if field == "-" else field for field in (own, peer, aspect))
            claims[name] = Claim(name, run, comparison, aspect or "", own, peer, goals_in(goal), file, phrase)
        else:
            raise ValueError(f"{TABLE.name}:{number}: neither a run nor a claim of a run above: {line}")
    return runs, claims


class Store:
    """DIR/KIND/NAME.json"""

    def __init__(self, folder):
        self.folder = folder

    def path(self, kind, claim):
        return self.folder / kind / f"{claim.name}.json"

    def read(self, kind, claim):
        path = self.path(kind, claim)
        return json.loads(path.read_text()) if path.exists() else None

    def write(self, kind, claim, told):
        path = self.path(kind, claim)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(told, indent=1) + "\n")

    def remove(self, kind, claim):
        self.path(kind, claim).unlink(missing_ok=True)

    def kinds(self):
        """Those measured, and of each maker without any, the maker's name."""
        found = sorted(path.name for path in self.folder.glob("*") if path.is_dir() and any(path.glob("*.json")))
        return found + [maker for maker in MAKERS if not any(kind.split("-")[0] == maker for kind in found)]


def judged(claim, record):
    """What a run's OUT.json says of a claim; None where it has nothing."""
    state = next((state for state in record["comparisons"] if state["name"] == claim.comparison), None)
    goal = claim.goal(record["machine"]["kind"])
    told = protocol.Results(state).statement(claim.peer, claim.aspect, goal, claim.own) if state else None
    return told and {"claim": claim.name, "source": claim.source(), "date": record["date"], "commit": record["commit"],
                     "machine": record["machine"], "peers": record["identity"]["peers"], "notes": record["notes"], **told}


def standing(claim, kind, told):
    """A stored result, judged by the goal that its line has now; None where the line names another comparison by now."""
    if told is None or (told["comparison"], told["aspect"]) != (claim.comparison, claim.aspect):
        return None
    if (claim.own or told["own"], claim.peer or told["peer"]) != (told["own"], told["peer"]):
        return None
    goal = claim.goal(kind)
    return told | {"goal": goal, "verdict": protocol.verdict(goal, told["low"], told["established"])}


def cell(told):
    if told is None:
        return "not measured"
    failed = f" ({', '.join(told['failed'])} failed)" if told["failed"] else ""
    return f"{told['verdict']}{failed}: {protocol.ratio_text(told)} of {told['mode']}, {told['date']}, {told['commit']}"


def table_of(claims, store):
    """Markdown: a row a claim, a column a kind of processor."""
    kinds = store.kinds()
    lines = ["# Claims and what is measured of them", "",
             f"By scripts/compare/all.sh; README.md says how to read it. Made {datetime.date.today()}.", "",
             "| claim | peer | goal | source | " + " | ".join(kinds) + " |", "|---|---|---:|---|" + "---|" * len(kinds)]
    machines, counts = {}, {kind: collections.Counter() for kind in kinds}
    for claim in claims.values():
        found = [standing(claim, kind, store.read(kind, claim)) for kind in kinds]
        for kind, told in zip(kinds, found):
            counts[kind][told["verdict"] if told else "not measured"] += 1
        machines.update({told["machine"]["kind"]: protocol.machine_line(told["machine"]) for told in found if told})
        peer = claim.peer or next((told["peer"] for told in found if told), "the best")
        lines.append(f"| {claim.name} | {peer} | {claim.goal_text()} | {claim.source()} | " + " | ".join(map(cell, found)) + " |")
    lines += [""] + [f"- {kind}: {machines.get(kind, 'no such machine yet')}. " +
                     ", ".join(f"{count} {what}" for what, count in sorted(counts[kind].items())) + "." for kind in kinds]
    return "\n".join(lines) + "\n"


def command_of(run, out, options):
    places = {"data": options.data, "python": options.python, "bin": str(ROOT / "build/release")}
    words = [re.sub(r"\{(data|python|bin)\}", lambda place: places[place[1]], word) for word in shlex.split(run.command)]
    return words + (QUICK.split() if options.quick else []) + [str(out)]


def run_one(run, claims, store, kind, options, seconds):
    """Runs a comparison for at most so many seconds, and stores what it says of its claims."""
    out = options.work / kind / run.name
    out.parent.mkdir(parents=True, exist_ok=True)
    if options.quick:
        out.with_suffix(".json").unlink(missing_ok=True)
    command = ["timeout", "--kill-after=10", f"{seconds:.0f}", *command_of(run, out, options)]
    print(f"all: {shlex.join(command)}", file=sys.stderr, flush=True)
    environment = {**os.environ, "PYTHON": options.python, "TRAINWRIGHT_TEST_DATA": options.data}
    with open(out.with_suffix(".log"), "ab") as log:
        done = subprocess.run(command, cwd=ROOT, stdout=log, stderr=log, env=environment, check=False)
    if done.returncode == 124:
        print(f"all: {run.name}: out of time; the same command goes on with it", file=sys.stderr)
        return False
    if done.returncode:  # where the work was not the same, too: nothing follows for a claim
        print(f"all: {run.name}: exit status {done.returncode}; see {out.with_suffix('.log')}", file=sys.stderr)
        return False
    return options.quick or keep(claims, store, kind, json.loads(out.with_suffix(".json").read_text()))


def keep(claims, store, kind, record):
    """Stores what a run says of its claims; False where it says nothing of one, or a mode of a peer failed."""
    found = [(claim, judged(claim, record)) for claim in claims]
    for claim, told in found:
        if told:
            store.write(kind, claim, told)
        else:
            print(f"all: {claim.run} has nothing on {claim.name}: see its OUT.md", file=sys.stderr)
        for name, why in (told or {}).get("failed", {}).items():
            print(f"all: {claim.name}: not established: {name} failed: {why}", file=sys.stderr)
    return all(told and not told["failed"] for _, told in found)


def due(runs, claims, store, kind, options):
    """[(run, its claims that are missing, or lack a mode that failed)]; all of them with --again or --quick"""
    def missing(claim):
        told = standing(claim, kind, store.read(kind, claim))
        return told is None or bool(told["failed"])
    wanted = [claim for claim in claims.values() if options.again or options.quick or missing(claim)]
    if options.only:
        unknown = set(options.only) - set(runs) - set(claims)
        if unknown:
            raise ValueError(f"--only: no run or claim of claims.tsv: {', '.join(sorted(unknown))}")
        wanted = [claim for claim in wanted if claim.run in options.only or claim.name in options.only]
    of_runs = [(run, [claim for claim in wanted if claim.run == run.name]) for run in runs.values()]
    return [(run, own) for run, own in of_runs if own]


def begin_again(runs, claims, store, kind, options):
    """Removes what is there of all that is asked for: it is stale, and what is measured from now on can be gone on with."""
    for run, own in due(runs, claims, store, kind, options):
        for claim in own:
            store.remove(kind, claim)
        for suffix in (".json", ".md"):
            (options.work / kind / run.name).with_suffix(suffix).unlink(missing_ok=True)


def run_all(runs, claims, store, kind, options, now=time.monotonic, execute=run_one):
    """True where every run that was due has ended well. A run that the time left is too short for is left out."""
    end, well = now() + options.deadline * 60 - options.spent, True
    if options.again and not options.quick:
        begin_again(runs, claims, store, kind, options)
    for run, own in due(runs, claims, store, kind, options):
        left = end - now()
        if left < (1 if options.quick else run.minutes * 60):
            print(f"all: {run.name}: takes {run.minutes:g} minutes, and {max(0, left) / 60:.0f} are left", file=sys.stderr)
            well = False
            continue
        well &= execute(run, own, store, kind, options, min(left, MOST_OF_MINUTES * 60 * run.minutes))
        if not options.quick:
            write_table(claims, store)
    return well


def write_table(claims, store):
    store.folder.mkdir(parents=True, exist_ok=True)
    (store.folder / "claims.md").write_text(table_of(claims, store))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--deadline", type=float, default=120)
    parser.add_argument("--spent", type=float, default=0)
    parser.add_argument("--only", type=lambda text: text.split(","))
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "scripts/compare/results/claims")
    for name in ("--again", "--list", "--table", "--quick"):
        parser.add_argument(name, action="store_true")
    options = parser.parse_args()
    options.work = ROOT / "build/compare" / ("claims-quick" if options.quick else "claims")
    options.data = os.environ.get("TRAINWRIGHT_TEST_DATA", "")
    options.python = os.environ.get("PYTHON", "python3")
    runs, claims = read_table(TABLE.read_text())
    store, kind = Store(options.results), Machine().record()["kind"]
    if options.list:
        for run, own in due(runs, claims, store, kind, options):
            print(f"{run.name}: {run.minutes:g} minutes: {run.command} OUT\n  " + "\n  ".join(claim.name for claim in own))
        return 0
    well = options.table or run_all(runs, claims, store, kind, options)
    if options.quick:
        return 0 if well else 1
    write_table(claims, store)
    print((store.folder / "claims.md").read_text())
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
