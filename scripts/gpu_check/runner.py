"""Runs the steps of a check one after the other: limits, a deadline, one JSON line a step, and going on where it stopped.

A step is a function that takes a Runner and returns its figures; it raises StepFailed where what it checks does not hold and
NotAvailable where the machine lacks what it needs. steps.jsonl gets one line when it ends. A step that the deadline cut off
is run again by the next call; all others that have a line are not.
"""
import dataclasses
import json
import math
import os
import pathlib
import signal
import subprocess
import time
import typing


DRY_RUN_PATIENCE = 10  # times a step's limit: what a loaded machine without a GPU takes is no matter


class Unfinished(Exception):
    """Of a step that came to no good end; the figures so far may be given."""

    def __init__(self, problem, figures=None):
        super().__init__(problem)
        self.figures = figures or {}


class StepFailed(Unfinished):
    """What a step checks does not hold."""


class OutOfTime(Unfinished):
    """A command did not end within the step's limit or before the deadline."""


class NotAvailable(Exception):
    """The machine, or this build, lacks what the step is about."""


def as_json(value):
    """With null for the numbers that JSON has no word for: infinities and NaN."""
    if isinstance(value, dict):
        return {name: as_json(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@dataclasses.dataclass(frozen=True)
class Step:
    name: str
    limit_s: float  # most seconds that it may take
    run: typing.Callable


@dataclasses.dataclass
class Settings:
    root: pathlib.Path  # with bin/, libexec/trainwright/ and tests/
    data: pathlib.Path  # a text
    fixtures: pathlib.Path  # the folder tests/, or what a bundle has of it
    out: pathlib.Path  # steps.jsonl, report.md and traces: what is worth bringing home
    work: pathlib.Path  # all else; nothing in it is deleted
    device: str = "cuda"
    tiny: bool = False  # the dry run's sizes
    deadline_s: float | None = None
    torch: pathlib.Path | None = None  # the folder of the torch whose libraries are used


class Runner:
    """Gives the steps their commands, and writes what came of them."""

    def __init__(self, settings):
        self.settings = settings
        self.start = time.monotonic()
        self.step_end = float("inf")
        self.lines = settings.out / "steps.jsonl"
        self.done = self._done()
        settings.work.mkdir(parents=True, exist_ok=True)
        settings.out.mkdir(parents=True, exist_ok=True)

    def _done(self):
        if not self.lines.exists():
            return {}
        records = map(json.loads, self.lines.read_text().splitlines())
        return {record["step"]: record for record in records if record["status"] != "cut_off"}

    def remaining_s(self):
        if self.settings.deadline_s is None:
            return float("inf")
        return self.settings.deadline_s - (time.monotonic() - self.start)

    def run_all(self, steps):
        """\\returns whether all that ran has passed and nothing was left undone"""
        whole = True
        for step in steps:
            if step.name in self.done:
                print(f"gpu-check: {step.name}: done before ({self.done[step.name]['status']})", flush=True)
                whole = whole and self.done[step.name]["status"] != "failed"
                continue
            if self.remaining_s() < 1:
                print(f"gpu-check: {step.name}: not begun: the deadline has come", flush=True)
                whole = False
                continue
            whole = self._run(step) and whole
        return whole

    def _run(self, step):
        before, remaining = time.monotonic(), self.remaining_s()
        limit_s = step.limit_s * (DRY_RUN_PATIENCE if self.settings.tiny else 1)
        self.step_end = before + min(limit_s, remaining)
        record = {"step": step.name, "status": "passed", "figures": {}, "problem": None}
        try:
            record["figures"] = step.run(self) or {}
        except NotAvailable as problem:
            record.update(status="not_available", problem=str(problem))
        except StepFailed as problem:
            record.update(status="failed", problem=str(problem), figures=problem.figures)
        except OutOfTime as problem:
            record.update(status="cut_off" if remaining < limit_s else "failed", problem=str(problem), figures=problem.figures)
        except Exception as problem:  # of this script: the steps behind it run all the same
            record.update(status="failed", problem=f"{type(problem).__name__}: {problem}")
        record["figures"] = as_json(record["figures"])
        record["time_s"] = round(time.monotonic() - before, 1)
        record["ended"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        with self.lines.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(record, allow_nan=False) + "\n")
        if record["status"] != "cut_off":
            self.done[step.name] = record
        words = record["problem"] or ", ".join(f"{k} {v}" for k, v in record["figures"].items() if not isinstance(v, (dict, list)))
        print(f"gpu-check: {step.name}: {record['status']} in {record['time_s']} s: {words[:300]}", flush=True)
        return record["status"] in ("passed", "not_available")

    # What steps use.

    def tool(self, name):
        return str(self.settings.root / "bin" / name)

    def test_program(self, name):
        return str(self.settings.root / "tests" / name)

    def environment(self, **more):
        settings = self.settings
        environment = dict(os.environ, TRAINWRIGHT_TEST_FIXTURES=str(settings.fixtures), **more)
        folders = [settings.root / "lib"]
        if settings.torch is not None:
            folders += [settings.torch / "lib", *sorted(settings.torch.parent.glob("nvidia/*/lib"))]
            environment["TRAINWRIGHT_CUDA_PLUGIN"] = str(settings.root / "libexec/trainwright/libtrainwright_cuda.so")
        path = [str(folder) for folder in folders if folder.is_dir()] + [environment.get("LD_LIBRARY_PATH", "")]
        if any(path):
            environment["LD_LIBRARY_PATH"] = ":".join(filter(None, path))
        return environment

    def run(self, *command, check=True, **environment):
        """Runs a command until the step's end. \\returns its exit status and all that it wrote, also in a log in work/."""
        command = [str(word) for word in command]
        log = self.settings.work / "commands.log"
        with log.open("a+", encoding="utf-8", errors="replace") as file:
            file.write("$ " + " ".join(command) + "\n")
            file.flush()
            begin = file.tell()
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                                       env=self.environment(**environment), start_new_session=True)
            try:
                status = process.wait(max(0.1, self.step_end - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise OutOfTime(f"{pathlib.Path(command[0]).name} did not end in time") from None
            file.seek(begin)
            text = file.read()
        if check and status != 0:
            raise StepFailed(f"{pathlib.Path(command[0]).name} ended with status {status}: {text[-1500:].strip()}")
        return status, text

    def once(self, name, make):
        """A folder or file of work/ that is made once: `make` gets a path for it. One that was cut off is made again."""
        path = self.settings.work / name
        if not path.exists():
            cut_off = len(list(self.settings.work.glob(f"unfinished-*-{name}")))
            unfinished = self.settings.work / f"unfinished-{cut_off}-{name}"
            make(unfinished)
            unfinished.rename(path)
        return path
