"""The protocol by which the scripts of this folder time contestants on machines that others use, too.

The primary figure is of one thread on one pinned processor: work for a CPU second. With several threads it is work for a
second of wall time, divided by what a spin loop gains there on as many threads just before and just after, so that what the
machine did not have to give is not taken for a contestant's fault. Contestants take turns in rounds, whose order turns round each time; at
least five rounds count. What is compared are the ratios of one round. Their median is reported with the interval between
order statistics that covers the median of all rounds with the reported probability, whatever their distribution.

A round is marked where the host took more than 2 % of the processors from it, where a contestant of one thread, or the
spin loop, got less than 95 % of a processor, or where the spin loop gained otherwise after a contestant than before it.
A marked round is repeated. After three marked tries nothing is established: figures are still reported, and no verdict. Nor is
it where a mode of the peer failed, which might have been its best. A goal holds where the lower end of the interval reaches it.

A comparison is stored after each try in OUT.json, from which the same command goes on, and OUT.md is made of it. It goes on
only on the same machine with the same code and peers; otherwise it starts over, and says so.
"""
import contextlib
import dataclasses
import datetime
import hashlib
import importlib.metadata
import json
import math
import os
import pathlib
import platform
import select
import statistics
import subprocess
import sys
import tempfile
import time
import typing

from machine import Machine, Spin

SCHEMA = "trainwright.compare/2"
ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/release"
# Those that are measured beside the tools.
SPEED_PROGRAMS = ("encode_speed", "loader_speed", "packer_speed", "kernel_speed", "codec/codec_bench")
LEAST_ROUNDS = 5
MOST_TRIES = 3
MOST_STEAL = 0.02
LEAST_CPU_SHARE = 0.95
# Of what a spin loop gains before and after a sample, and above the number of its threads.
MOST_GAIN_CHANGE = MOST_GAIN_EXCESS = 0.05
# A difference of two measurements below this is noise.
LEAST_TIME_S = 1e-6
# What the least and the greatest of five rounds cover: no interval of five covers more.
CONFIDENCE = 1 - 2 * 0.5 ** LEAST_ROUNDS
# Compiling is part of a first answer, and may take twenty minutes on two processors.
LONGEST_ANSWER_S = 1800
# How PyTorch's contestants run: {name: mode of torch.compile}. The best of them is the peer.
TORCH_MODES = {"eager": None, "compiled": "default", "max-autotune": "max-autotune"}


class ContestantFailed(Exception):
    """A contestant that cannot do its work; the others go on without it."""


@dataclasses.dataclass(frozen=True)
class Sample:
    """Of one contestant in one round: work in the comparison's unit, and what it took."""
    work: float
    cpu_s: float
    wall_s: float
    details: dict = dataclasses.field(default_factory=dict)

    @property
    def cpu_share(self):
        """Of its processor, that it got; of a difference of two measurements the lesser of theirs."""
        return self.details.get("cpu_share", self.cpu_s / self.wall_s if self.wall_s > 0 else 0.0)

    @classmethod
    def of(cls, work, told, **details):
        """Of what a program reported under the names cpu_s and wall_s."""
        return cls(work, told["cpu_s"], told["wall_s"], details)


@dataclasses.dataclass(frozen=True)
class Contestant:
    """Measured in each round by calling `measure`, which returns a Sample or, of several aspects, {aspect: Sample}.

    `peer` is the name that several modes of one program share; of those the best one is compared. `prepare`, where there is
    one, is called before the first round. One that has fewer `threads` than the comparison has is not divided by a spin
    loop's gain: what several threads gain over one is a ratio like others.
    """
    name: str
    measure: typing.Callable
    peer: str | None = None
    prepare: typing.Callable | None = None
    threads: int | None = None

    @property
    def of_peer(self):
        return self.peer or self.name


def interval(values, confidence=CONFIDENCE):
    """(low, high, probability) of the median: the innermost order statistics that cover it with `confidence`.

    None where even the least and the greatest do not. An order statistic k from either end leaves out the median where
    k or fewer of n values fall on its other side, which has the binomial distribution with 1/2.
    """
    ordered, n, best = sorted(values), len(values), None
    for k in range((n + 1) // 2):
        outside = 2 * sum(math.comb(n, i) for i in range(k + 1)) / 2 ** n
        if 1 - outside < confidence:
            break
        best = (ordered[k], ordered[n - 1 - k], 1 - outside)
    return best


def verdict(goal, low, established):
    """What is said of a goal (None: there is none) for a ratio, given the lower end of its interval (None: none, too)."""
    if not established or low is None:
        return "not established"
    if goal is None:
        return "no goal"
    return "holds" if low >= goal else "misses"


@dataclasses.dataclass(frozen=True)
class Spins:
    """Of a sample of several threads: the spin loop on as many just before and just after it."""
    threads: int
    before: Spin
    after: Spin

    @property
    def gain(self):
        return (self.before.gain + self.after.gain) / 2

    def marks(self):
        share = min(self.before.least_cpu_share, self.after.least_cpu_share)
        gains = f"gain {self.before.gain:.2f} before and {self.after.gain:.2f} after"
        greatest = max(self.before.gain, self.after.gain)
        return (([f"CPU/wall {share:.2f} a thread"] if share < LEAST_CPU_SHARE else []) +
                ([gains] if abs(self.before.gain - self.after.gain) > MOST_GAIN_CHANGE * greatest else []) +
                ([f"{gains}, of {self.threads} threads"] if greatest > self.threads * (1 + MOST_GAIN_EXCESS) else []))


class Comparison:
    """Contestants that do the same work, the first of them ours."""

    def __init__(self, name, unit, contestants, *, threads=1, rounds=LEAST_ROUNDS, tries=MOST_TRIES, settings=None, machine=None,
                 cpus=None, by_gain=True):
        """`tries` is how often a round is measured at most.

        `settings` is what else the figures depend on: stored rounds of other settings are not gone on with. Without
        `by_gain` the rates of several threads are not divided by a spin loop's gain: where a contestant does the same work
        with more processes, its rate has the unit of the others.
        """
        self.name, self.unit, self.contestants, self.threads, self.rounds = name, unit, list(contestants), threads, rounds
        self.by_gain = by_gain
        self.settings = {"unit": unit, "threads": threads, **({} if by_gain else {"by_gain": False}), **(settings or {})}
        self.machine, self.most_tries = machine or Machine(), tries
        self.cpus = list(cpus[:threads]) if cpus else None
        if self.cpus and len(self.cpus) < threads:
            raise ValueError(f"{threads} threads and {len(self.cpus)} processors")
        self.tries, self.failed = [], {}

    @property
    def ours(self):
        return self.contestants[0].name

    def state(self):
        return {"name": self.name, "settings": self.settings, "ours": self.ours, "cpus": self.cpus,
                "peers": {contestant.name: contestant.of_peer for contestant in self.contestants},
                "failed": self.failed, "tries": self.tries}

    def resume(self, state):
        """Takes over the finished rounds of the same comparison; returns why it does not."""
        if state["settings"] != self.settings or list(state["peers"]) != [one.name for one in self.contestants]:
            return "other settings or contestants"
        if self.cpus not in (None, state["cpus"]) or not set(state["cpus"] or ()) <= set(self.machine.allowed()):
            return f"it was on processors {state['cpus']}"
        self.tries, self.failed, self.cpus = state["tries"], state["failed"], state["cpus"]
        return None

    def run(self, after_try=lambda: None):
        """The rounds that are missing. `after_try` is called after each try of each."""
        self.cpus = self.cpus or self.machine.choose(self.threads)
        prepared = self.retry_failed()
        done = max((one["round"] for one in self.tries if one["counts"]), default=0)
        if done >= self.rounds:
            return self
        with self.machine.pinned(self.cpus):
            for contestant in self.living():
                if contestant.prepare and contestant.name not in prepared:
                    self.guarded(contestant, contestant.prepare)
        for number in range(done + 1, self.rounds + 1):
            self.one_round(number, after_try)
        return self

    def retry_failed(self):
        """The names of those that failed when the stored rounds were measured and can do their work now.

        The rounds start over where there is one: those stored lack it.
        """
        before, self.failed = self.failed, {}
        with self.machine.pinned(self.cpus):
            for contestant in self.contestants:
                if contestant.name in before:
                    self.guarded(contestant, contestant.prepare or contestant.measure)
        works = before.keys() - self.failed.keys()
        if works:
            self.tries = []
        return works

    def one_round(self, number, after_try):
        # Where a round was marked each time no verdict is possible: the others are measured once, for their figures.
        tries = self.most_tries if established(self.tries) else 1
        for attempt in range(1, tries + 1):
            done = self.one_try(number, attempt)
            done["counts"] = not done["marks"] or attempt == tries
            self.tries.append(done)
            after_try()
            if done["counts"]:
                return

    def living(self):
        return [contestant for contestant in self.contestants if contestant.name not in self.failed]

    def guarded(self, contestant, work):
        """What `work` returns; None where a peer failed. Where ours does there is nothing to compare."""
        try:
            return work()
        except ContestantFailed as error:
            if contestant.name == self.ours:
                raise
            self.failed[contestant.name] = str(error)
            return None

    def one_try(self, number, attempt):
        order = self.living()[::1 if number % 2 else -1]
        samples, marks, stolen_s, measured_s, spins = {}, [], 0.0, 0.0, []
        load = [self.machine.load()]
        for contestant in order:
            threads = contestant.threads or self.threads
            before = self.machine.spin(self.cpus[:threads]) if threads > 1 else None
            begin, stolen = self.machine.now(), self.machine.stolen_s(self.cpus)
            with self.machine.pinned(self.cpus):
                measured = self.guarded(contestant, contestant.measure)
            measured_s += self.machine.now() - begin
            stolen_s += self.machine.stolen_s(self.cpus) - stolen
            if measured is None:
                continue
            spin = before and Spins(threads, before, self.machine.spin(self.cpus[:threads]))
            aspects = measured if isinstance(measured, dict) else {"": measured}
            samples[contestant.name] = {aspect: self.stored(sample, spin) for aspect, sample in aspects.items()}
            marks += self.marks_of(contestant, aspects, spin)
            spins += [spin.gain] if spin else []
        load.append(self.machine.load())
        steal = stolen_s / (measured_s * len(self.cpus)) if measured_s > 0 else 0.0
        if steal > MOST_STEAL:
            marks.insert(0, f"steal {steal:.1%}")
        return {"round": number, "try": attempt, "at": datetime.datetime.now().isoformat(timespec="seconds"),
                "order": [contestant.name for contestant in order], "samples": samples, "steal": steal, "load": load,
                "mhz": self.machine.mhz(self.cpus), "spin_gains": spins, "marks": marks}

    def stored(self, sample, spin):
        took = max(sample.cpu_s if self.threads == 1 else sample.wall_s, LEAST_TIME_S)
        told = {"work": sample.work, "cpu_s": sample.cpu_s, "wall_s": sample.wall_s, "cpu_share": sample.cpu_share,
                "rate": sample.work / took / (spin.gain if spin and self.by_gain else 1)}
        return told | ({"spin_gain": spin.gain} if spin else {}) | sample.details

    def marks_of(self, contestant, aspects, spin):
        """What disturbed a contestant. Of several threads the spin loop is asked: their own waiting is no disturbance."""
        if any(min(sample.cpu_s, sample.wall_s) < LEAST_TIME_S for sample in aspects.values()):
            return [f"{contestant.name}: takes no longer than its start-up"]
        if spin is not None:
            return [f"spin loop beside {contestant.name}: {mark}" for mark in spin.marks()]
        return [f"{contestant.name}{', ' + aspect if aspect else ''}: CPU/wall {sample.cpu_share:.2f}"
                for aspect, sample in aspects.items() if sample.cpu_share < LEAST_CPU_SHARE]


def established(tries):
    """Whether every round has a try without marks."""
    return not any(one["counts"] and one["marks"] for one in tries)


class Results:
    """What the stored tries of a comparison say."""

    def __init__(self, state):
        self.state = state
        self.rounds = [one for one in state["tries"] if one["counts"]]
        self.established = len(self.rounds) >= LEAST_ROUNDS and established(state["tries"])

    def aspects(self):
        found = {}
        for one in self.rounds:
            found.update(dict.fromkeys(aspect for sample in one["samples"].values() for aspect in sample))
        return list(found)

    def samples(self, name, aspect):
        """{round: sample} of a contestant."""
        return {one["round"]: one["samples"][name][aspect] for one in self.rounds if aspect in one["samples"].get(name, {})}

    def rates(self, name, aspect=""):
        return [sample["rate"] for sample in self.samples(name, aspect).values()]

    def contestants(self, aspect):
        return [name for name in self.state["peers"] if self.rates(name, aspect)]

    def ratios(self, name, aspect="", own=None):
        """How many times as fast as a contestant ours (or another) is, by rounds that have both."""
        ours, theirs = self.samples(own or self.state["ours"], aspect), self.samples(name, aspect)
        return [ours[number]["rate"] / theirs[number]["rate"] for number in sorted(ours.keys() & theirs.keys())]

    def modes(self, peer):
        """The contestants of a peer; all peers' where none is named."""
        peers = self.state["peers"]
        return [name for name, of_peer in peers.items() if name != self.state["ours"]
                and (peer in (of_peer, name) if peer else of_peer != peers[self.state["ours"]])]

    def best_mode(self, peer, aspect=""):
        """The contestant of a peer that has the greatest median; any peer's where none is named."""
        names = [name for name in self.modes(peer) if self.rates(name, aspect)]
        return max(names, key=lambda name: statistics.median(self.rates(name, aspect)), default=None)

    def statement(self, peer=None, aspect="", goal=None, own=None):
        """The ratio of ours, or of `own`, to a peer's best mode, with its interval and what follows for a goal.

        None where nothing is measured. Where a mode of the peer failed nothing is established: it might have been the best.
        """
        mode = self.best_mode(peer, aspect)
        ratios = self.ratios(mode, aspect, own) if mode else []
        if not ratios:
            return None
        low, high, probability = interval(ratios) or (None, None, None)
        failed = {name: self.state["failed"][name] for name in self.modes(peer) if name in self.state["failed"]}
        well = self.established and not failed
        told = {"comparison": self.state["name"], "aspect": aspect, "own": own or self.state["ours"],
                "peer": peer or self.state["peers"][mode], "mode": mode,
                "ratio": statistics.median(ratios), "low": low, "high": high, "probability": probability,
                "rounds": len(ratios), "cpus": self.state["cpus"], "established": well, "failed": failed, "marks": self.marks()}
        return told | {"goal": goal, "verdict": verdict(goal, low, well)}

    def marks(self):
        """{what: how often} of all tries, without their numbers."""
        counts = {}
        for one in self.state["tries"]:
            for mark in one["marks"]:
                what = next((word for word in ("steal", "CPU/wall", "gain") if word in mark), "no time left")
                counts[what] = counts.get(what, 0) + 1
        return counts


def spread(values, digits=None):
    """Median and, of five values or more, its interval."""
    if not values:
        return ""
    form = (lambda x: f"{x:,.{digits}f}") if digits is not None else (lambda x: f"{x:,.0f}" if x >= 100 else f"{x:.3g}")
    found = interval(values)
    return form(statistics.median(values)) + (f" ({form(found[0])} to {form(found[1])})" if found else "")


def ratio_text(told):
    """2.31 (2.20 to 2.40)"""
    ends = "" if told["low"] is None else f" ({told['low']:.2f} to {told['high']:.2f})"
    return f"{told['ratio']:.2f}{ends}"


def markdown_row(claim, told, machine):
    """A row of a table with the columns claim, peer, ratio, interval, verdict, machine."""
    ends = "none" if told["low"] is None else f"{told['low']:.2f} to {told['high']:.2f} ({told['probability']:.0%})"
    return (f"| {claim} | {told['mode']} | {told['ratio']:.2f} | {ends} | {told.get('verdict', '')} | {machine['kind']}, "
            f"{machine['model']} |")


def section(state):
    """Markdown of one comparison."""
    results = Results(state)
    settings = state["settings"]
    clock = ("CPU second" if settings["threads"] == 1 else "second" if not settings.get("by_gain", True) else
             "second, of several threads divided by the spin loop's gain")
    lines = [f"## {state['name']}", "", f"{state['settings']['unit']} a {clock}; threads {state['settings']['threads']}, "
             f"processors {state['cpus']}, {len(results.rounds)} rounds" +
             ("." if results.established else ": **not established**") +
             "".join(f" {what} marked {count}." for what, count in results.marks().items()), "",
             f"| contestant | aspect | rate | {state['ours']} is faster | CPU/wall |", "|---|---|---:|---:|---:|"]
    for aspect in results.aspects():
        for name in results.contestants(aspect):
            samples = results.samples(name, aspect).values()
            share = statistics.median(sample["cpu_share"] for sample in samples)
            faster = "" if name == state["ours"] else spread(results.ratios(name, aspect), 2)
            lines.append(f"| {name} | {aspect} | {spread(results.rates(name, aspect))} | {faster} | {share:.2f} |")
    lines += [f"| {name} | | failed: {why} | | |" for name, why in state["failed"].items()]
    return "\n".join(lines) + "\n"


def machine_line(machine):
    clock = f", governor {machine['governor']}" if machine["governor"] else ""
    return (f"{machine['processors']} processors of an {machine['model']} ({machine['kind']}; "
            f"{', '.join(machine['units']) or 'no wide units'}{clock}{', virtual' if machine['virtual'] else ''})")


def version_here(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def digest_of(paths):
    """None of no files."""
    sha = hashlib.sha256()
    for path in (found := sorted(path for path in paths if path.is_file())):
        sha.update(f"{path.name} {path.stat().st_size}\n".encode())
        sha.update(path.read_bytes())
    return sha.hexdigest()[:16] if found else None


def code_here():
    """What is measured here: the commit, the built programs, these scripts, and the versions of peers in this Python."""
    def git(*arguments):
        with contextlib.suppress(OSError):  # there may be no git
            return subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=False).stdout.strip()
        return ""

    changed_files = git("status", "--porcelain", "--untracked-files=no", "--", ":!scripts/compare/results")
    here = pathlib.Path(__file__).parent
    packages = {line.split("==")[0].strip() for path in here.glob("*requirements.txt") for line in path.read_text().splitlines()
                if line and line[0] not in "#-"}
    versions = {package: version_here(package) for package in sorted(packages)}
    return {"commit": (git("rev-parse", "--short=12", "HEAD") or "no commit") + (", changed" if changed_files else ""),
            "programs": digest_of([*(BUILD / "bin").glob("*"), *(BUILD / "tests" / name for name in SPEED_PROGRAMS)]),
            "scripts": digest_of([*here.glob("*.py"), *here.glob("*.sh")]), "python": platform.python_version(),
            "peers": {package: version for package, version in versions.items() if version}}


def identity_of(machine, code):
    """What stored rounds must share with those that go on with them."""
    own = ("kind", "model", "family_model_stepping", "microcode", "processors", "memory_bytes")
    return {"machine": {name: machine.get(name) for name in own}, **code}


def changed(before, now):
    """What differs between identities, in words. The commit counts only where there are no built programs to be compared."""
    def flat(identity):
        return {f"{name}{' ' + key if key else ''}": value for name, part in identity.items()
                for key, value in (part if isinstance(part, dict) else {"": part}).items()}
    before, now = flat(before), flat(now)
    names = [name for name in dict.fromkeys([*before, *now]) if name != "commit" or now["programs"] is None]
    return [f"{name} was {before.get(name)}, is {now.get(name)}" for name in names if before.get(name) != now.get(name)]


class Record:
    """OUT.json and OUT.md: the comparisons of one script on one machine."""

    def __init__(self, out, title, script, *, notes="", machine=None, code=None):
        """`notes` is said below the title: versions, and what is timed. `code` takes the place of code_here()."""
        self.json, self.md = pathlib.Path(f"{out}.json"), pathlib.Path(f"{out}.md")
        self.title, self.script, self.notes = title, script, notes
        self.machine = machine or Machine()
        self.about, self.states, self.extra, self.after = self.machine.record(), [], {}, lambda record: ""
        self.identity = identity_of(self.about, code or code_here())
        if self.json.exists():
            stored = json.loads(self.json.read_text())
            changes = changed(stored["identity"] if stored.get("schema") == SCHEMA else {}, self.identity)
            if changes:
                self.say(f"starts over: {'; '.join(changes)}")
            else:
                self.states, self.extra = stored["comparisons"], stored["extra"]

    def say(self, what):
        print(f"{self.json}: {what}", file=sys.stderr, flush=True)

    def run(self, comparison):
        """Runs what is missing of a comparison; returns its Results."""
        for state in self.states:
            why = comparison.resume(state) if state["name"] == comparison.name else None
            if why:
                self.say(f"{comparison.name} starts over: {why}")
        self.states = [state for state in self.states if state["name"] != comparison.name] + [comparison.state()]

        def after_try():
            self.states[-1] = comparison.state()
            self.write()
            last = comparison.tries[-1]
            print(f"{comparison.name}: round {last['round']}, try {last['try']}" +
                  "".join(f"; {mark}" for mark in last["marks"]), file=sys.stderr, flush=True)

        comparison.run(after_try)
        self.states[-1] = comparison.state()
        self.write()
        return Results(self.states[-1])

    def results(self, name):
        return next((Results(state) for state in self.states if state["name"] == name), None)

    def text(self):
        loads = [load for state in self.states for one in state["tries"] for load in one["load"]]
        load = f", load {min(loads):.1f} to {max(loads):.1f}" if loads else ""
        return "\n".join([f"# {self.title}, {datetime.date.today()}", "",
                          f"`{self.script}`: {machine_line(self.about)}{load}. Medians, with the interval of "
                          f"{CONFIDENCE:.0%} or more; scripts/compare/README.md says how it is measured. {self.notes}".strip(),
                          "", *map(section, self.states)]) + self.after(self)

    def write(self):
        told = {"schema": SCHEMA, "script": self.script, "date": datetime.date.today().isoformat(), "machine": self.about,
                "identity": self.identity, "commit": self.identity["commit"], "notes": self.notes, "extra": self.extra,
                "comparisons": self.states}
        partial = self.json.with_suffix(".partial")
        partial.write_text(json.dumps(told, indent=1) + "\n")
        partial.replace(self.json)
        self.md.write_text(self.text())


@dataclasses.dataclass(frozen=True)
class Finished:
    """A command that ended well."""
    stdout: str
    cpu_s: float
    wall_s: float
    max_memory_bytes: int

    def sample(self, work, less=None, **details):
        """The time of the command or, where one of less work is given, what it takes longer: starting falls out."""
        details = {"max_memory_bytes": self.max_memory_bytes, **details}
        if less is None:
            return Sample(work, self.cpu_s, self.wall_s, details)
        return Sample(work, self.cpu_s - less.cpu_s, self.wall_s - less.wall_s, {"cpu_share": least_share(self, less), **details})


def least_share(*measured):
    """The least share of its processor that one of several measurements got."""
    return min(one.cpu_s / one.wall_s for one in measured)


def run_command(command, *, stdin=None, environment=None, timeout_s=None, stdout=None):
    """Runs a command alone to its end; its CPU seconds are those of it and of all that it waited for.

    `stdin` is a text or bytes. Its standard output is returned, or goes to the file `stdout`. Raises ContestantFailed.
    """
    command = [str(part) for part in command]
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        if stdin is not None:
            given.write(stdin.encode() if isinstance(stdin, str) else stdin)
            given.seek(0)
        begin = time.monotonic()
        try:
            process = subprocess.Popen(command, stdin=given if stdin is not None else subprocess.DEVNULL, stdout=stdout or out,
                                       stderr=err, env=environment)
        except OSError as error:
            raise ContestantFailed(str(error)) from error
        pid, usage = wait_for(process, timeout_s)
        wall_s = time.monotonic() - begin
        if pid is None:
            raise ContestantFailed(f"nothing within {timeout_s} s")
        if process.returncode != 0:
            err.seek(0)
            lines = err.read().decode(errors="replace").strip().splitlines()
            raise ContestantFailed(f"{command[0]}: {lines[-1] if lines else f'exit status {process.returncode}'}")
        out.seek(0)
        return Finished(out.read().decode(errors="replace"), usage.ru_utime + usage.ru_stime, wall_s, usage.ru_maxrss * 1024)


def wait_for(process, timeout_s):
    """(pid, usage) of a process that ended; (None, None) of one that had to be killed."""
    end = None if timeout_s is None else time.monotonic() + timeout_s
    while True:
        pid, status, usage = os.wait4(process.pid, 0 if end is None else os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return pid, usage
        if time.monotonic() > end:
            process.kill()
            process.wait()
            return None, None
        time.sleep(0.002)


def cpu_s_of(pid):
    """CPU seconds of a living process, to the kernel's tick."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Worker:
    """A process that does a round when it is asked to: one JSON object a line, in each direction (see serve).

    It starts when it is first asked and keeps what it has loaded and compiled. What it does not report of its CPU and wall
    time is measured from outside. One that takes longer than `longest_s` for an answer is ended and has failed.
    """

    def __init__(self, command, environment=None, longest_s=LONGEST_ANSWER_S):
        self.command, self.environment, self.longest_s = [str(part) for part in command], environment, longest_s
        self.process, self.errors, self.started_unix_s = None, None, None

    def ask(self, **request):
        if self.process is None:
            self.errors, self.started_unix_s = tempfile.TemporaryFile(), time.time()
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
                                            env=self.environment)
        begin, used = time.monotonic(), cpu_s_of(self.process.pid)
        line = b""
        with contextlib.suppress(OSError):  # one that has died is told below
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
            if not select.select([self.process.stdout], [], [], self.longest_s)[0]:
                self.process.kill()
                raise ContestantFailed(f"no answer within {self.longest_s:g} s")
            line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            self.errors.seek(0)
            lines = self.errors.read().decode(errors="replace").strip().splitlines()
            raise ContestantFailed((lines or [f"exit status {self.process.returncode}"])[-1])
        told = json.loads(line)
        return {"cpu_s": cpu_s_of(self.process.pid) - used, "wall_s": time.monotonic() - begin, **told}

    def sample(self, **request):
        told = self.ask(**request)
        timings = ("work", "cpu_s", "wall_s", "step_times_s", "cpu_times_s")
        details = {name: value for name, value in told.items() if name not in timings}
        return Sample(told["work"], told["cpu_s"], told["wall_s"], details)

    def close(self):
        if self.process is not None:
            with contextlib.suppress(OSError):  # one that has died reads no more
                self.process.stdin.close()
            self.process.wait()
            self.process.stdout.close()
            self.errors.close()
            self.process = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def requests():
    """A Worker's other end, for a program that asks for its work: pairs of a request and of what sends the answer, a dictionary.

    Whatever else prints to standard output, as libraries do, goes to standard error.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(told):
        print(json.dumps(told), file=answers, flush=True)

    return ((json.loads(line), answer) for line in sys.stdin)


def serve(work):
    """A Worker's other end: answers each line of standard input by what `work` returns for it, until it ends."""
    for request, answer in requests():
        answer(work(**request))


def timed(work):
    """(what a function returns, {cpu_s, wall_s}) of this process."""
    begin, used = time.monotonic(), time.process_time()
    result = work()
    return result, {"cpu_s": time.process_time() - used, "wall_s": time.monotonic() - begin}


def times_of_steps(step, count):
    """What `count` calls of a training step report: losses_nats, step_times_s and cpu_times_s."""
    told = {"losses_nats": [], "step_times_s": [], "cpu_times_s": []}
    for _ in range(count):
        loss, took = timed(step)
        told["losses_nats"].append(loss)
        told["step_times_s"].append(took["wall_s"])
        told["cpu_times_s"].append(took["cpu_s"])
    return told


def timed_steps(told, untimed=0):
    """The Sample of a training run that reports step_times_s, cpu_times_s, and tokens: of each step, or of every one."""
    steps = len(told["step_times_s"]) - untimed
    if steps < 1:
        raise ValueError(f"{len(told['step_times_s'])} steps, of which {untimed} are not timed")
    tokens = told["tokens"]
    amount = sum(tokens[untimed:]) if isinstance(tokens, list) else tokens * steps
    details = {name: told[name] for name in ("losses_nats", "max_memory_bytes", "parameters") if name in told}
    if "padded_tokens" in told:
        details["padding"] = sum(told["padded_tokens"][untimed:]) / amount
    return Sample(amount, sum(told["cpu_times_s"][untimed:]), sum(told["step_times_s"][untimed:]), details)


def whole_of_steps(told, untimed=0):
    """A Worker's answer of such a run."""
    sample = timed_steps(told, untimed)
    return {**told, **sample.details, "work": sample.work, "cpu_s": sample.cpu_s, "wall_s": sample.wall_s}


def add_options(parser):
    """The options of all scripts that compare."""
    parser.add_argument("--rounds", type=int, default=LEAST_ROUNDS, help="below 5 nothing is established")
    parser.add_argument("--tries", type=int, default=MOST_TRIES, help="of a round that something disturbs")
    parser.add_argument("--modes", type=lambda text: text.split(","), default=list(TORCH_MODES),
                        help=f"of PyTorch's contestants: {','.join(TORCH_MODES)} (default: all)")
    parser.add_argument("--cpus", type=lambda text: [int(part) for part in text.split(",")],
                        help="processors to be pinned to (default: those with the least to do)")
    parser.add_argument("--longest-answer", type=float, default=LONGEST_ANSWER_S, metavar="SECONDS",
                        help="after which a peer has failed; compiling is part of its first answer (default: %(default)s)")


def torch_modes(options):
    """{name: mode of torch.compile} of those that are wanted."""
    return {name: TORCH_MODES[name] for name in options.modes}


def loss_differences(name, ours, others, bound):
    """A line for each of others, {contestant: losses}, one of which is further from ours than `bound`, relatively."""
    found = []
    for who, losses in others.items():
        pairs = list(zip(ours, losses))
        if not pairs or any(not abs(a - b) <= bound * abs(b) for a, b in pairs):
            found.append(f"{name}: the first losses of {who} are {', '.join(f'{loss:.5f}' for loss in losses)}, of ours "
                         f"{', '.join(f'{loss:.5f}' for loss in ours[:len(losses)])}: more than {bound:g} apart")
    return found


def exit_status(failures):
    """1 where the contestants did not do the same work, as told on standard error."""
    for line in failures:
        print(f"not the same work: {line}", file=sys.stderr)
    return 1 if failures else 0


def how(options):
    """The arguments of a Comparison that add_options' options stand for."""
    return {"rounds": options.rounds, "tries": options.tries, "cpus": options.cpus}
