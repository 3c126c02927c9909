#!/usr/bin/env python3
"""Does harm to each rank of a run in each of its phases, and judges how the run ends: within how many seconds, with what
statuses and messages of each rank, and whether its last checkpoint is whole and, resumed on other numbers of ranks, ends as
the undisturbed run.

  scripts/compare/rank_faults.py [--bin FOLDER] [--ranks N] [--start HOW] [--zero STAGE] [--lora RANK] [--phases LIST]
                                 [--faults LIST] [--victims LIST] [--timeout S] [--shim FILE] [OUT.md]

  --bin FOLDER    the built tools (default: build/release/bin)
  --ranks N       a power of two (default: 4)
  --start HOW     variables: each rank is started by this script with torchrun's variables, so that each one's end, status
                  and messages are known; nproc: `train --nproc N`, which tells one status of all (default: both)
  --zero STAGE    0, 1 or 2 (default: 0)
  --lora RANK     train adapters of this rank (default: the whole model)
  --phases LIST   of start,forward,reduce,save,evaluate (default: all)
  --faults LIST   of kill,stop,cut,term,disk,memory, which are met in each phase, and of oom,data,weights,capability,build,
                  each with a run of its own (default: all)
  --victims LIST  numbers of the ranks that are harmed in turn (default: all; a full disk is always rank 0's)
  --timeout S     --dist-timeout of the runs (default: 3)
  --shim FILE     delayed_sockets.so (default: compiled with c++)
  OUT.md          where the report goes (default: standard output)

kill is SIGKILL, stop SIGSTOP, term SIGTERM; cut shuts down all TCP connections of the rank; disk fills the file system of
the run directory, a small one in memory that the script mounts; memory lets the rank have no more private memory than it has. oom lets
it have too little for its micro-batch from the start, under --auto-oom and without --exact-world: all must go on with half
of it. data, weights, capability and build start one rank with other shards, other weights to begin with,
ATEN_CPU_CAPABILITY=default, or a program of another version.

That a phase was met is seen in the run's records and folders, and in what each rank has sent. The other ranks must end
within the time-out and a tenth, with 4, each naming the rank at fault and a cause; the time runs from the harm, for disk and
memory, which are felt later, from the first error or end. The machine must be idle: where it is not, ranks that only wait for
a core are late, too. A launcher takes up to three times as long for a rank that is stopped: it
asks, and then kills. Ends with status 1 where anything of this is not so, and leaves the folders of such cases.
"""
import argparse
import contextlib
import datetime
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from harmed_run import ASKING_MALLOC, Hung, Run, SmallDisk, data_bytes, harm, other_build
from train_runs import ROOT, describe, digest, llama, make_shards, tools_environment, weights_of

MODEL, NARROW = llama(256, 704, 3, 4), llama(64, 176, 4, 4)
PHASES = ["start", "forward", "reduce", "save", "evaluate"]
HARMS = ["kill", "stop", "cut", "term", "disk", "memory"]
ODDITIES = ["data", "weights", "capability", "build"]
STEPS, SAVE_EVERY, EVAL_EVERY = 12, 4, 6
HURT_AFTER_STEP = 5  # a checkpoint is there, the next one and an evaluation are not
SEND_DELAY_US = 1000
GRADIENT_BYTES = 1 << 16  # what is sent beside gradients in a step is less
ATTEMPTS = 3              # to meet a phase
SLOW = 1.1                # times the time-out is within it
HUNG = 5                  # times the time-out, and what a fault is given besides
MOST_S = 600
STATUS = {"kill": 137, "stop": 4, "cut": 4, "disk": 4, "memory": 4}  # of the rank at fault
# What the others may say of it, in a line with its name. Who dies before all have come has not come.
CAUSE = {"kill": r"killed|did not come", "stop": r"stopped|did not come", "cut": r"\bcut\b|lost its connection|did not come",
         "disk": r"space|full|ended with status|failed", "memory": r"memory",
         "term": r"signal|status 143|killed|did not come"}
# Who has no memory before it can tell has not come, or is gone.
UNTOLD = r"|did not come|left the run without a word"
ODDITY = {"data": r"sha256 of the data", "weights": r"weights", "capability": r"CPU capability", "build": r"version|build|program"}


def worst(seconds):
    return f"{max(seconds):.1f}" if seconds else ""


class Table:
    """The cases of ranks that are started in one way."""

    HEADER = ["phase", "fault", "rank", "moment", "s, others", "s, at fault", "statuses", "what another rank says",
              "checkpoint", "resumed on", "verdict"]

    def __init__(self, options, folder, shim, start):
        self.options, self.folder, self.shim, self.launched = options, folder, shim, start == "nproc"
        self.environment = tools_environment(options.bin)
        self.rows, self.failures, self.places, self.seconds = [], 0, itertools.count(), {}
        # Of which numbers of ranks the next run is resumed: all powers of two in turn.
        self.worlds = itertools.cycle([2 ** power for power in range(options.ranks.bit_length())])

    def arguments(self, accum=1, data="shards", base="base"):
        model = ["--init", str(self.folder / base)]
        lora = ["--lora", str(self.options.lora), "--lora-dropout", "0.1"] if self.options.lora else []
        return [*model, *lora, "--data", str(self.folder / data), "--eval-data", str(self.folder / "other"), "--eval-every",
                str(EVAL_EVERY), "--steps", str(STEPS), "--batch", "4", "--accum", str(accum), "--save-every", str(SAVE_EVERY),
                "--async-save", "off", "--seq", "128", "--exact-world", str(self.options.ranks), "--dist-timeout",
                str(self.options.timeout), "--zero", str(self.options.zero), "--ddp-bucket-mb", "1", "--out", "run"]

    def new_place(self):
        place = self.folder / f"case-{next(self.places)}"
        place.mkdir()
        return place

    def forget(self, run):
        shutil.rmtree(run.place)
        shutil.rmtree(run.logs)

    def tool(self, *command, check=True):
        return subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=check)

    def prepare(self):
        (self.folder / "model.json").write_text(json.dumps(MODEL))
        (self.folder / "narrow.json").write_text(json.dumps(NARROW))
        make_shards(self.folder, self.environment, shards="head -n 8000", other="tail -n 3000")
        for seed, name in ((0, "base"), (1, "other-base")):
            self.tool("train", "-q", "--model", "model.json", "--data", "shards", "--seq", "128", "--batch", "4", "--steps", "2",
                      "--seed", str(seed), "--out", name)
        self.step_s, self.expected = {}, None
        for delayed in (False, True):
            self.undisturbed(delayed)

    def start(self, place, command, delayed=False, environment_of=None, environment=None):
        return Run(place, self.options.ranks, command, {**self.environment, **(environment or {})}, self.shim, self.launched,
                   SEND_DELAY_US if delayed else 0, environment_of)

    def undisturbed(self, delayed):
        """Remembers the times of a run, and its weights in the end, which delays must not change."""
        run = self.start(self.new_place(), ["train", "-q", *self.arguments()], delayed)
        begin_s = time.time()
        run.await_ends(but=None, within_s=MOST_S)
        if any(run.statuses()):
            sys.exit(f"rank_faults: error: the undisturbed run failed in {run.place}:\n{run.messages()[-2000:]}")
        weights = self.weights(run.place)
        if self.expected not in (None, weights):
            sys.exit("rank_faults: error: delays changed the weights")
        self.expected = weights
        self.step_s[delayed] = statistics.median(record["step_time_s"] for record in run.records("step")[2:])
        if not delayed:
            self.eval_s = statistics.median(record["eval_time_s"] for record in run.records("eval"))
            self.start_s = run.records("run_begin")[0]["time_unix_s"] - begin_s
        self.forget(run)

    @staticmethod
    def weights(place):
        return digest(weights_of(place / "run" / "latest").read_bytes())

    def reach(self, run, phase, rank):
        """Returns when the run is in a phase: what shows it, and a function that tells whether it still is."""
        def evaluated(step):
            return any(record["step"] == step for record in run.records("eval"))

        if phase == "start":
            time.sleep(max(0.0, 0.5 * self.start_s))
            run.pid_of(rank)
            return f"{0.5 * self.start_s:.2f} s after the start", lambda: run.steps() == 0
        if phase == "save":
            def is_saving():
                with contextlib.suppress(OSError):
                    return any(name.startswith(".step-") for name in os.listdir(run.place / "run" / "checkpoints"))
                return False
            run.await_phase(lambda: run.steps() > HURT_AFTER_STEP and is_saving())
            return f"step {2 * SAVE_EVERY} was being saved", lambda: True
        if phase == "evaluate":
            run.await_phase(lambda: run.steps() >= EVAL_EVERY)
            time.sleep(0.3 * self.eval_s)
            return f"in the evaluation of step {EVAL_EVERY}", lambda: not evaluated(EVAL_EVERY)
        run.await_phase(lambda: run.steps() >= HURT_AFTER_STEP)
        before = run.sent_bytes(rank)

        def sends():
            return run.sent_bytes(rank) - before > GRADIENT_BYTES

        def goes_on():
            return run.steps() == HURT_AFTER_STEP
        if phase == "forward":
            time.sleep(0.15 * self.step_s[False])
            return f"before the gradients of step {HURT_AFTER_STEP + 1}", lambda: goes_on() and not sends()
        run.await_phase(lambda: sends() or not goes_on())
        sent_kib = (run.sent_bytes(rank) - before) >> 10
        return f"{sent_kib} KiB of step {HURT_AFTER_STEP + 1} were sent", goes_on

    def harmed(self, phase, fault, rank):
        """(run, what shows the phase, when it was harmed, its disk); raises Hung where the phase is not met."""
        for attempt in range(ATTEMPTS):
            place = self.new_place()
            disk = SmallDisk(place) if fault == "disk" else None
            run = self.start(place, ["train", "-q", *self.arguments()], delayed=phase == "reduce",
                             environment=ASKING_MALLOC if fault == "memory" else None)
            try:
                moment, still = self.reach(run, phase, rank)
                is_met = still()
                harmed_s = harm(run, fault, rank, disk)
                # A full disk takes a while to make, and what stops the writer stops the records.
                if is_met and (fault == "disk" or still()):
                    return run, moment, harmed_s, disk
                problem = f"not met: {moment}"
            except Hung as missed:
                problem = str(missed)
            run.end()
            if disk is not None:
                disk.close(keep=False)
            if attempt + 1 < ATTEMPTS:
                self.forget(run)
        raise Hung(problem)

    def allowance(self, fault):
        """Seconds until it is felt at all, which others may take beyond the time-out."""
        slow_s = self.step_s[True]
        return {"disk": STEPS * slow_s, "memory": 3 * slow_s, "term": 3 * slow_s + self.eval_s}.get(fault, 0)

    def bound(self, phase, fault):
        """Seconds within which the others must end."""
        bound_s = SLOW * self.options.timeout * (3 if self.launched and fault == "stop" else 1)
        # Ranks await each other for the time-out from when they have begun themselves.
        return bound_s + (0.5 * self.start_s if phase == "start" else 0) + (self.allowance(fault) if fault == "term" else 0)

    def end_of(self, run, phase, fault, rank, harmed_s):
        """Waits for the end: (seconds of the slowest other, seconds of the rank at fault, problems)."""
        alone = fault == "stop" and not self.launched
        most_s = HUNG * self.options.timeout + self.allowance(fault)
        noticed_s = run.await_ends(but=rank if alone else None, within_s=most_s)
        begin_s = noticed_s if fault in ("disk", "memory") else harmed_s
        others = [process.end_s for number, process in enumerate(run.processes) if self.launched or number != rank]
        seconds, own_s, problems = max(others) - begin_s, None, []
        bound_s = self.bound(phase, fault)
        if seconds > bound_s:
            problems.append(f"took {seconds:.1f} s")
        if alone:
            os.kill(run.processes[rank].pid, signal.SIGCONT)
            begin_s = time.monotonic()
            run.await_ends(but=None, within_s=most_s)
        if not self.launched:
            own_s = run.processes[rank].end_s - begin_s
            if own_s > bound_s:
                problems.append(f"the rank at fault took {own_s:.1f} s")
        self.seconds.setdefault(fault, []).append(seconds)
        return seconds, own_s, problems

    def wrong_statuses(self, run, phase, fault, rank):
        statuses = run.statuses()
        if self.launched:
            expected = [[143 if fault == "term" else STATUS[fault]]]
        elif fault == "term":
            # Before a rank catches the signal it just ends, and the others find it gone.
            expected = [[143] if number == rank or phase != "start" else [143, 4] for number in range(run.ranks)]
        else:
            expected = [[STATUS[fault]] if number == rank else [4] for number in range(run.ranks)]
        wrong = [number for number, status in enumerate(statuses) if status not in expected[number]]
        return [] if not wrong else [f"status {statuses[number]} instead of {expected[number][0]}"
                                     + ("" if self.launched else f" of rank {number}") for number in wrong]

    def naming(self, run, rank, cause):
        """(one of the messages that name a rank and a cause, who has none)"""
        said, silent = "", []
        for number in [None] if self.launched else [other for other in range(run.ranks) if other != rank]:
            lines = [line for line in run.messages(number).splitlines()
                     if re.search(rf"\brank {rank}\b", line) and re.search(cause, line)]
            said = said or (lines[0] if lines else "")
            if not lines:
                last = " ".join(run.messages(number).strip().splitlines()[-1:])[:160]
                silent.append(f"{'nobody' if number is None else f'rank {number} never'} names rank {rank} and a cause ({last})")
        return said, silent

    def resume(self, place):
        """(what --status tells, on how many ranks the run went on, what is wrong with that)"""
        status = self.tool("train", "-q", "--status", str(place / "run"), check=False).returncode
        run = place / "run"
        begun = (run / "run.json").exists()
        told = {0: "complete", 1: "whole", 3: "damaged", 4: "no run"}.get(status, f"status {status}")
        if begun and status != 4:
            saved = sorted(path.name for path in (run / "checkpoints").glob("step-*"))
            told += f", step {int(saved[-1][5:])}" if saved else ", none yet"
        problems = [f"--status: {told}"] if status not in ((0, 1) if begun else (0, 1, 4)) else []
        ranks = next(self.worlds) if begun else self.options.ranks
        arguments = ["--resume", "--out", "run"] if begun else ["--resume", *self.arguments(self.options.ranks // ranks)]
        done = subprocess.run(["train", "-q", *arguments, "--nproc", str(ranks)], cwd=place, env=self.environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=MOST_S, check=False)
        if done.returncode != 0:
            problems.append(f"resumed on {ranks}: status {done.returncode}: {done.stderr.strip()[-200:]}")
        elif self.weights(place) != self.expected:
            problems.append(f"resumed on {ranks}: other weights")
        return told, ranks, problems

    def add(self, run, problems, *cells):
        cells = [*cells, "; ".join(problems) or "equal"]
        self.rows.append([str(cell).replace("|", "/").replace("\n", " ")[:240] for cell in cells])
        print(*self.rows[-1], sep=" | ", file=sys.stderr, flush=True)
        self.failures += bool(problems)
        if run is not None and not problems:
            self.forget(run)

    def case(self, phase, fault, rank):
        try:
            run, moment, harmed_s, disk = self.harmed(phase, fault, rank)
        except (OSError, subprocess.CalledProcessError) as problem:
            return self.add(None, [f"not permitted: {problem}"], phase, fault, rank, *[""] * 7)
        except Hung as problem:
            return self.add(None, [str(problem)], phase, fault, rank, *[""] * 7)
        seconds = own_s = None
        try:
            seconds, own_s, problems = self.end_of(run, phase, fault, rank, harmed_s)
        except Hung as problem:
            problems = [str(problem)]
        run.end()
        said, silent = self.naming(run, rank, CAUSE[fault] + (UNTOLD if (phase, fault) == ("start", "memory") else ""))
        if (phase, fault) == ("start", "cut") and not any(run.statuses()):
            # It had only asked whether the store is there, and asked again.
            problems, moment = [], moment + ", and all connected again"
            self.seconds[fault].pop()
        else:
            problems += self.wrong_statuses(run, phase, fault, rank)
            # A signal that all agree on is no fault of a rank.
            problems += silent if fault != "term" else []
        if disk is not None:
            disk.empty()
        told, world, unequal = self.resume(run.place)
        problems += unequal
        if disk is not None:
            disk.close(keep=bool(problems))
        return self.add(run, problems, phase, fault, rank, moment, "-" if seconds is None else f"{seconds:.1f}",
                        "" if own_s is None else f"{own_s:.1f}", " ".join(map(str, run.statuses())), said[:160], told, world)

    def odd(self, fault, rank):
        """One rank is started otherwise, and refused before anything is written."""
        begin_s = time.monotonic()
        if fault == "build":
            try:
                program = other_build(self.options.bin, self.folder)
            except OSError as problem:
                return self.add(None, [f"not possible here: {problem}"], "start", fault, rank, *[""] * 7)
        else:
            program = "train"
        own = {"data": {"data": "other"}, "weights": {"base": "other-base"}}.get(fault, {})
        run = self.start(
            self.new_place(), lambda number: [str(program) if number == rank else "train", "-q",
                                              *self.arguments(**(own if number == rank else {}))],
            environment_of=lambda number: {"ATEN_CPU_CAPABILITY": "default"} if (fault, number) == ("capability", rank) else {})
        problems = []
        try:
            begin_s = run.await_ends(but=None, within_s=HUNG * self.options.timeout + self.start_s)
        except Hung as problem:
            problems.append(str(problem))
        run.end()
        seconds = max(process.end_s for process in run.processes) - begin_s
        if seconds > SLOW * self.options.timeout:
            problems.append(f"took {seconds:.1f} s")
        # All are compared with rank 0.
        expected = [2 if (number == rank) == (rank != 0) else 4 for number in range(run.ranks)]
        if run.statuses() != expected:
            problems.append(f"statuses {run.statuses()} instead of {expected}")
        said, silent = self.naming(run, rank, ODDITY[fault])
        problems += silent
        # Weights are there to be compared when the run has begun.
        written = (run.place / "run").exists() if fault != "weights" else run.steps() > 0
        if written:
            problems.append("something was written" if fault != "weights" else "a step was made")
        return self.add(run, problems, "start", fault, rank, "before the first step", f"{seconds:.1f}", "",
                        " ".join(map(str, run.statuses())), said[:160], "", "")

    def prepare_oom(self):
        """Bytes of private memory that suffice for half a micro-batch and not for a whole one, and the losses of steps."""
        most = {}
        for batch in (64, 32):
            run = self.start(self.new_place(), self.wide(batch))
            most[batch] = data_bytes(run, MOST_S)
            if batch == 64:
                self.wide_losses = [record["loss_nats"] for record in run.records("step")]
            self.forget(run)
        self.enough_bytes = (most[64] + most[32]) // 2

    def wide(self, batch):
        return ["train", "-q", "--model", str(self.folder / "narrow.json"), "--data", str(self.folder / "shards"), "--seq", "256",
                "--batch", str(batch), "--steps", "4", "--save-every", "0", "--save-model-only", "--auto-oom", "--zero",
                str(self.options.zero), "--dist-timeout", str(self.options.timeout), "--out", "run"]

    def oom(self, rank):
        """A rank has too little memory for its micro-batch: all halve it and go on."""
        limited = ["bash", "-c", f"ulimit -d {self.enough_bytes >> 10} && exec \"$@\"", "bash", *self.wide(64)]
        run = self.start(self.new_place(), lambda number: limited if number == rank else self.wide(64))
        problems = []
        begin_s = time.monotonic()
        try:
            run.await_ends(but=None, within_s=MOST_S)
        except Hung as problem:
            problems.append(str(problem))
        run.end()
        if any(run.statuses()):
            problems.append(f"statuses {run.statuses()}: {run.messages().strip()[-200:]}")
        steps, losses = run.records("step"), [record["loss_nats"] for record in run.records("step")]
        told = [record["message"] for record in run.records("warning") if "memory" in record["message"]]
        if not told:
            problems.append("no record warns of it")
        if [record["effective_batch"] for record in steps] != [64 * run.ranks] * 4 or steps[-1:] and steps[-1]["accum"] < 2:
            problems.append(f"steps of {[(record['effective_batch'], record['accum']) for record in steps]} samples and parts")
        off = max((abs(own / other - 1) for own, other in zip(losses, self.wide_losses)), default=1)
        if off > 1e-4:
            problems.append(f"losses differ by {off:.1e}")
        limit = f"{self.enough_bytes >> 20} MiB instead of what 64 samples take"
        return self.add(run, problems, "forward", "oom", rank, limit, f"{time.monotonic() - begin_s:.1f}", "",
                        " ".join(map(str, run.statuses())), " ".join(told)[:160], f"losses within {off:.0e}", "")

    def run(self):
        options = self.options
        for phase, fault in itertools.product(options.phases, [fault for fault in options.faults if fault in HARMS]):
            for rank in [0] if fault == "disk" else options.victims:
                self.case(phase, fault, rank)
        if self.launched:
            return  # what follows needs ranks that are started each by itself
        for fault, rank in itertools.product([fault for fault in options.faults if fault in ODDITIES], options.victims):
            self.odd(fault, rank)
        if "oom" in options.faults:
            self.prepare_oom()
            for rank in options.victims:
                self.oom(rank)

    def markdown(self):
        header = list(self.HEADER)
        if self.launched:
            header[4:7] = ["s, all", "-", "status"]
        slowest = ", ".join(f"{fault} {worst(seconds)} s" for fault, seconds in self.seconds.items())
        lines = [f"Undisturbed, it begins after {self.start_s:.1f} s, a step takes {self.step_s[False]:.2f} s, with sends that are "
                 f"{SEND_DELAY_US / 1000:g} ms late (reduce) {self.step_s[True]:.2f} s, an evaluation {self.eval_s:.1f} s. "
                 f"{len(self.rows)} cases, {self.failures} failed. Slowest end of the others: {slowest or 'none'}.", "",
                 "| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
        return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in self.rows])


def compile_shim(folder):
    shim = folder / "delayed_sockets.so"
    subprocess.run([os.environ.get("CXX", "c++"), "-O2", "-shared", "-fPIC", "-o", shim,
                    ROOT / "scripts/compare/delayed_sockets.cc"], check=True)
    return shim


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)

    def names(of):
        def split(text):
            if unknown := set(text.split(",")) - set(of):
                raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))}: not among {', '.join(of)}")
            return text.split(",")
        return split
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--start", choices=["nproc", "variables", "both"], default="both")
    parser.add_argument("--zero", type=int, choices=[0, 1, 2], default=0)
    parser.add_argument("--lora", type=int)
    parser.add_argument("--phases", type=names(PHASES), default=PHASES)
    parser.add_argument("--faults", type=names([*HARMS, *ODDITIES, "oom"]), default=[*HARMS, *ODDITIES, "oom"])
    parser.add_argument("--victims", type=lambda text: [int(rank) for rank in text.split(",")])
    parser.add_argument("--timeout", type=float, default=3)
    parser.add_argument("--shim", type=pathlib.Path)
    parser.add_argument("out", nargs="?", type=pathlib.Path)
    options = parser.parse_args()
    options.bin = options.bin.resolve()
    if options.ranks < 2 or options.ranks & (options.ranks - 1):
        parser.error("--ranks must be a power of two, at least 2")
    options.victims = options.victims or list(range(options.ranks))
    if max(options.victims) >= options.ranks:
        parser.error(f"--victims: there are {options.ranks} ranks")
    return options


def main():
    options = parse()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="rank-faults-"))
    shim = (options.shim or compile_shim(folder)).resolve()
    trains = f"adapters of rank {options.lora}" if options.lora else "the whole model"
    parts, failures, begin = [f"# Faults of ranks, {describe(options.bin)}\n", f"{options.ranks} ranks of one thread, "
                              f"--zero {options.zero}, {trains}, --dist-timeout {options.timeout:g}."], 0, time.monotonic()
    for start in ["variables", "nproc"] if options.start == "both" else [options.start]:
        own = folder / start
        own.mkdir()
        table = Table(options, own, shim, start)
        table.prepare()
        table.run()
        failures += table.failures
        parts.append(f"\n## Started by {'train --nproc' if start == 'nproc' else 'variables'}\n\n{table.markdown()}")
    report = "\n".join(parts) + f"\n\nAll in {time.monotonic() - begin:.0f} s.\n"
    if options.out:
        options.out.write_text(report)
    else:
        print(report)
    if failures == 0:
        shutil.rmtree(folder)
    else:
        print(f"rank_faults: {failures} cases failed; see {folder}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
