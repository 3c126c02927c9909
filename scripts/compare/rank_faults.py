#!/usr/bin/env python3
"""Does harm to one rank of a run in each of its phases, and tells how the run ends: within how many seconds, with what
statuses and messages, and whether its last checkpoint, resumed on other numbers of ranks, ends as the undisturbed run.

  scripts/compare/rank_faults.py [--bin FOLDER] [--ranks N] [--start nproc|variables] [--phases LIST] [--faults LIST]
                                 [--timeout S] [--shim FILE] [--repeat N] [OUT.md]

  --bin FOLDER   the built tools (default: build/release/bin)
  --ranks N      a power of two (default: 4)
  --start HOW    nproc: `train --nproc N`, of whose ranks the launcher tells one status; variables: each rank started by
                 this script with torchrun's variables, so that each one's status is known (default: both)
  --phases LIST  of start,forward,reduce,save,evaluate (default: all)
  --faults LIST  of kill,stop,cut,term,disk,memory (default: all)
  --timeout S    --dist-timeout of the runs (default: 3)
  --shim FILE    delayed_sockets.so, which makes the exchange of gradients long enough to be met (default: compiled with c++)
  --repeat N     each case with the fault in N ranks, from the last one down (default: 1); disk is always rank 0's
  OUT.md         where the table goes (default: standard output)

kill is SIGKILL, stop SIGSTOP, term SIGTERM; cut shuts down all TCP connections of the rank; disk fills the file system of
the run directory, a small one in memory that the script mounts; memory lets the rank have no more private memory. The
moment of a fault is found from the run's own files and from the steps' times. Ends with status 1 where a run hangs, a
message does not name the rank at fault, or what is resumed is not the undisturbed run. Leaves folders of failed cases.
"""
import argparse
import contextlib
import ctypes
import datetime
import itertools
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import start_ranks

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 258, "hidden_size": 256,
    "intermediate_size": 704, "num_hidden_layers": 6, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64,
    "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": True,
    "hidden_act": "silu",
}
PHASES = ["start", "forward", "reduce", "save", "evaluate"]
FAULTS = ["kill", "stop", "cut", "term", "disk", "memory"]
STEPS, SAVE_EVERY, EVAL_EVERY = 12, 4, 6
HURT_AFTER_STEP = 5  # a checkpoint is there, the next one and an evaluation are not
GRACE_S = 15         # beyond the time-out, until a run counts as hanging
SEND_DELAY_US = 20000
DISK_BYTES = 400 << 20
PIDFD_OPEN, PIDFD_GETFD = 434, 438


def children_of(pid):
    found = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            found += map(int, pathlib.Path(f"/proc/{pid}/task/{task}/children").read_text().split())
    return found


def descendants_of(pid):
    own = children_of(pid)
    return own + [below for child in own for below in descendants_of(child)]


def rank_of(pid):
    """The rank that a process is by its environment, or None."""
    with contextlib.suppress(OSError):
        match = re.search(rb"(?:^|\0)RANK=(\d+)\0", pathlib.Path(f"/proc/{pid}/environ").read_bytes() + b"\0")
        return int(match.group(1)) if match else None
    return None


def cut_connections(pid):
    """Shuts down the TCP connections of a process, whose own descriptors are borrowed for that. Returns how many."""
    libc = ctypes.CDLL(None, use_errno=True)
    pidfd = libc.syscall(PIDFD_OPEN, pid, 0)
    if pidfd < 0:
        raise OSError(ctypes.get_errno(), "pidfd_open")
    cut = 0
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            if not os.readlink(f"/proc/{pid}/fd/{name}").startswith("socket:"):
                continue
            borrowed = libc.syscall(PIDFD_GETFD, pidfd, int(name), 0)
            if borrowed < 0:
                raise PermissionError(ctypes.get_errno(), "pidfd_getfd")
            with socket.socket(fileno=borrowed) as connection:
                if connection.family in (socket.AF_INET, socket.AF_INET6):
                    connection.shutdown(socket.SHUT_RDWR)
                    cut += 1
    os.close(pidfd)
    return cut


def logs_of(place):
    """Where the messages of a run go: not to its disk, which may be full."""
    return place.with_name(place.name + "-logs")


class Run:
    """A training run on several ranks, under way."""

    def __init__(self, case, place, options, arguments, delay):
        self.place, self.ranks = place, options.ranks
        self.logs = logs_of(place)
        self.logs.mkdir()
        environment = dict(case.environment)
        if delay:
            environment.update({"LD_PRELOAD": str(case.shim), "SEND_DELAY_US": str(SEND_DELAY_US)})
        command = ["train", "-q", *arguments]
        if options.start == "nproc":
            with open(self.logs / "stderr", "wb") as messages:
                self.processes = [subprocess.Popen([*command, "--nproc", str(options.ranks)], cwd=place, env=environment,
                                                   stdout=subprocess.DEVNULL, stderr=messages, stdin=subprocess.DEVNULL)]
        else:
            self.processes = start_ranks.start(options.ranks, command, environment, cwd=place, stdout=subprocess.DEVNULL,
                                               stderr=lambda rank: open(self.logs / f"stderr-{rank}", "wb"),
                                               stdin=subprocess.DEVNULL)
        self.launched = options.start == "nproc"

    def pid_of(self, rank, within_s=10):
        """The process that computes as a rank."""
        if not self.launched:
            return self.processes[rank].pid
        end = time.monotonic() + within_s
        while time.monotonic() < end:
            found = [pid for pid in descendants_of(self.processes[0].pid) if rank_of(pid) == rank and not children_of(pid)]
            if found:
                return found[-1]
            time.sleep(0.001)
        raise TimeoutError(f"rank {rank} did not start")

    def steps(self):
        """The records of steps so far."""
        with contextlib.suppress(OSError):
            lines = (self.place / "run" / "metrics.jsonl").read_text().splitlines()
            records = []
            for line in lines:
                with contextlib.suppress(ValueError):  # the last line may be half there
                    records.append(json.loads(line))
            return [record for record in records if record["type"] == "step"]
        return []

    def is_over(self):
        return all(process.poll() is not None for process in self.processes)

    def wait_for(self, what, within_s=120):
        end = time.monotonic() + within_s
        while not what():
            if self.is_over() or time.monotonic() > end:
                raise TimeoutError("the phase was not met: the run " + ("was over" if self.is_over() else "went on"))
            time.sleep(0.0005)

    def wait(self, within_s):
        """Seconds until all processes were over; None: they were not."""
        begin = time.monotonic()
        while not self.is_over():
            if time.monotonic() - begin > within_s:
                return None
            time.sleep(0.005)
        return time.monotonic() - begin

    def end(self):
        """Ends what is left of it."""
        for process in self.processes:
            left = [process.pid, *descendants_of(process.pid)] if process.poll() is None else []
            for pid in left:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()

    def statuses(self):
        return [process.returncode if process.returncode >= 0 else signal.Signals(-process.returncode).name
                for process in self.processes]

    def messages(self):
        return "".join(path.read_text(errors="replace") for path in sorted(self.logs.glob("stderr*")))


class SmallDisk:
    """A file system in memory of DISK_BYTES, mounted at a folder."""

    def __init__(self, folder):
        self.folder, self.filler = folder, folder / "filler"
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", folder], check=True,
                       capture_output=True)

    def fill(self):
        with open(self.filler, "wb") as file:
            space = os.statvfs(self.folder)
            with contextlib.suppress(OSError):
                os.posix_fallocate(file.fileno(), 0, space.f_bavail * space.f_frsize)

    def close(self, keep):
        """What is kept moves to the folder below."""
        if keep:
            shutil.copytree(self.folder, self.folder.with_name(self.folder.name + "-kept"), symlinks=True)
        subprocess.run(["umount", self.folder], check=True, capture_output=True)


class Table:
    def __init__(self, options, folder, shim):
        self.options, self.folder, self.shim = options, folder, shim
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("TRAINWRIGHT_")}
        self.environment.update({"PATH": f"{options.bin}:{os.environ['PATH']}", "TRAINWRIGHT_THREADS": "1"})
        self.rows, self.failures, self.places = [], 0, itertools.count()
        # Of which numbers of ranks the next run is resumed: all powers of two in turn.
        self.worlds = itertools.cycle([2 ** power for power in range(options.ranks.bit_length())])

    def arguments(self, accum=1):
        return ["--model", str(self.folder / "model.json"), "--data", str(self.folder / "shards"), "--eval-data",
                str(self.folder / "other"), "--eval-every", str(EVAL_EVERY), "--steps", str(STEPS), "--batch", "4",
                "--accum", str(accum), "--save-every", str(SAVE_EVERY), "--async-save", "off", "--seq", "128",
                "--exact-world", str(self.options.ranks), "--dist-timeout", str(self.options.timeout), "--out", "run"]

    def new_place(self):
        place = self.folder / f"case-{next(self.places)}"
        place.mkdir()
        return place

    def prepare(self):
        (self.folder / "model.json").write_text(json.dumps(MODEL))
        data = ROOT / "examples/data/tinyshakespeare.txt"
        subprocess.run(["bash", "-euo", "pipefail", "-c",
                        f"head -n 8000 '{data}' | pretokenize -q - | pack -q --chunk 256 -o shards/; "
                        f"tail -n 3000 '{data}' | pretokenize -q - | pack -q --chunk 256 -o other/"],
                       cwd=self.folder, env=self.environment, check=True)
        self.step_s = {delayed: self.undisturbed(delayed) for delayed in (False, True)}

    def undisturbed(self, delayed):
        """Seconds of a step; remembers the weights in the end, which delays must not change."""
        place = self.new_place()
        run = Run(self, place, self.options, self.arguments(), delayed)
        if run.wait(600) is None or any(run.statuses()):
            run.end()
            sys.exit(f"rank_faults: error: the undisturbed run failed in {place}:\n{run.messages()[-2000:]}")
        weights = self.weights(place)
        if delayed and weights != self.expected:
            sys.exit("rank_faults: error: delays changed the weights")
        self.expected = weights
        step_s = statistics.median(record["step_time_s"] for record in run.steps()[2:])
        shutil.rmtree(place)
        shutil.rmtree(logs_of(place))
        return step_s

    @staticmethod
    def weights(place):
        return subprocess.run("sha256sum < run/latest/model.safetensors", shell=True, cwd=place, capture_output=True,
                              text=True, check=True).stdout

    def reach(self, run, phase):
        """Returns when the run is in a phase, with what shows it."""
        if phase == "start":
            run.pid_of(self.options.ranks - 1)
            time.sleep(0.05)
            return "0.05 s after the ranks' start"
        if phase == "save":
            checkpoints = run.place / "run" / "checkpoints"

            def is_saving():
                with contextlib.suppress(OSError):
                    return len(run.steps()) > HURT_AFTER_STEP and any(
                        name.startswith(".step-") for name in os.listdir(checkpoints))
                return False
            run.wait_for(is_saving)
            return "a checkpoint was being written"
        step = EVAL_EVERY if phase == "evaluate" else HURT_AFTER_STEP
        run.wait_for(lambda: len(run.steps()) >= step)
        quick_s, slow_s = self.step_s[False], self.step_s[True]
        wait_s = {"forward": 0.15 * quick_s, "reduce": quick_s + 0.5 * max(0.0, slow_s - quick_s), "evaluate": 0.1}[phase]
        time.sleep(wait_s)
        return f"{wait_s:.2f} s after step {step}"

    def hurt(self, run, fault, rank, disk):
        pid = run.pid_of(rank)
        if fault in ("kill", "stop", "term"):
            os.kill(pid, {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "term": signal.SIGTERM}[fault])
        elif fault == "cut":
            cut_connections(pid)
        elif fault == "disk":
            disk.fill()
        else:
            resource.prlimit(pid, resource.RLIMIT_DATA, (1 << 20, 1 << 20))

    def resume(self, place, ranks):
        """What is wrong with the run that goes on on so many ranks, or nothing."""
        begun = (place / "run" / "run.json").exists()
        arguments = ["--resume", "--out", "run"] if begun else ["--resume", *self.arguments(self.options.ranks // ranks)]
        done = subprocess.run(["train", "-q", *arguments, *(["--nproc", str(ranks)] if ranks > 1 else [])], cwd=place,
                              env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              stdin=subprocess.DEVNULL, timeout=600, check=False)
        if done.returncode != 0:
            return f"status {done.returncode}: {done.stderr.strip()[-200:]}"
        return None if self.weights(place) == self.expected else "other weights"

    def case(self, phase, fault, rank):
        place, disk = self.new_place(), None
        if fault == "disk":
            try:
                disk = SmallDisk(place)
            except (OSError, subprocess.CalledProcessError) as error:
                self.rows.append([phase, fault, rank, "not permitted: mount", "", "", "", "", str(error)])
                return
        problems, seconds = [], None
        run = Run(self, place, self.options, self.arguments(), delay=phase == "reduce")
        try:
            moment = self.reach(run, phase)
            self.hurt(run, fault, rank, disk)
            # A full disk is noticed at the next write.
            seconds = run.wait(self.options.timeout + GRACE_S + (STEPS * self.step_s[True] if fault == "disk" else 0))
            if seconds is None:
                problems.append("hung")
        except (TimeoutError, OSError) as error:
            moment = str(error)
            problems.append(moment)
        run.end()
        statuses, messages = run.statuses(), run.messages()
        named = re.search(rf"\brank {rank}\b", messages) is not None
        if fault != "term" and not named:
            problems.append(f"no message names rank {rank}")
        if fault == "term" and not set(statuses) <= {143}:
            problems.append("SIGTERM did not end all ranks with 143")
        if disk is not None:
            disk.filler.unlink(missing_ok=True)
        world = next(self.worlds) if (place / "run" / "run.json").exists() else self.options.ranks
        resumed = self.resume(place, world)
        if resumed is not None:
            problems.append(f"resumed on {world}: {resumed}")
        said = next((line for line in messages.splitlines() if f"rank {rank}" in line), messages.strip()[-120:])
        self.rows.append([phase, fault, rank, "-" if seconds is None else f"{seconds:.1f}",
                          " ".join(map(str, statuses)), said[:120].replace("|", "/"), moment, world,
                          "; ".join(problems) or "equal"])
        print(*self.rows[-1], sep=" | ", file=sys.stderr, flush=True)
        self.failures += bool(problems)
        if disk is not None:
            disk.close(keep=bool(problems))
        if not problems:
            shutil.rmtree(place)
            shutil.rmtree(logs_of(place))

    def markdown(self):
        header = ["phase", "fault", "rank", "s to the end", "status of the launcher" if self.options.start == "nproc" else
                  "statuses of the ranks", "message", "moment", "resumed on", "last weights"]
        lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
        return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in self.rows])


def compile_shim(folder):
    shim = folder / "delayed_sockets.so"
    subprocess.run([os.environ.get("CXX", "c++"), "-O2", "-shared", "-fPIC", "-o", shim,
                    ROOT / "scripts/compare/delayed_sockets.cc"], check=True)
    return shim


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--start", choices=["nproc", "variables", "both"], default="both")
    parser.add_argument("--phases", default=",".join(PHASES))
    parser.add_argument("--faults", default=",".join(FAULTS))
    parser.add_argument("--timeout", type=float, default=3)
    parser.add_argument("--shim", type=pathlib.Path)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("out", nargs="?")
    options = parser.parse_args()
    options.bin = options.bin.resolve()
    if options.ranks < 2 or options.ranks & (options.ranks - 1):
        parser.error("--ranks must be a power of two, at least 2")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="rank-faults-"))
    shim = (options.shim or compile_shim(folder)).resolve()
    parts, failures = [f"# Faults of ranks, {datetime.date.today()}\n", f"{options.ranks} ranks of one thread, "
                       f"--dist-timeout {options.timeout:g}, {os.cpu_count()} processors."], 0
    for start in ["nproc", "variables"] if options.start == "both" else [options.start]:
        own = folder / start
        own.mkdir()
        table = Table(argparse.Namespace(**{**vars(options), "start": start}), own, shim)
        table.prepare()
        for phase, fault in itertools.product(options.phases.split(","), options.faults.split(",")):
            ranks = [0] if fault == "disk" else range(options.ranks - 1, options.ranks - 1 - options.repeat, -1)
            for rank in ranks:
                table.case(phase, fault, rank)
        failures += table.failures
        parts.append(f"\n## Started by {'train --nproc' if start == 'nproc' else 'variables'}\n\n{table.markdown()}")
    report = "\n".join(parts) + "\n"
    if options.out:
        pathlib.Path(options.out).write_text(report)
    else:
        print(report)
    if failures == 0:
        shutil.rmtree(folder)
    else:
        print(f"rank_faults: {failures} cases failed; see {folder}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
