"""A training run on several ranks, under way, and what does harm to one of them."""
import contextlib
import ctypes
import mmap
import os
import pathlib
import resource
import shutil
import signal
import socket
import struct
import subprocess
import time

import start_ranks
from train_runs import records_of

PIDFD_OPEN, PIDFD_GETFD = 434, 438
DISK_BYTES = 400 << 20
# Then each tensor's memory is asked of the system, and none is found in what was freed before.
ASKING_MALLOC = {"MALLOC_MMAP_THRESHOLD_": str(1 << 16), "MALLOC_TRIM_THRESHOLD_": str(1 << 16)}
MEMORY_LEFT_BYTES = 1 << 18


class Hung(Exception):
    """What was waited for did not come."""


class Run:
    """Ranks that `train --nproc` starts, or that are started here, each by torchrun's variables.

    All that a rank sends over TCP is counted by a library that is loaded into it, which can make it late, too.
    """

    def __init__(self, place, ranks, command, environment, shim, launched=False, send_delay_us=0, environment_of=None):
        """command is a list, or a function of the rank; environment_of gives what a rank that is started here has in its
        environment besides."""
        self.place, self.ranks, self.launched = place, ranks, launched
        self.logs = place.with_name(place.name + "-logs")  # not on the run's disk, which may be full
        self.logs.mkdir()
        counts = self.logs / "sent"
        counts.write_bytes(bytes(8 * ranks))
        with open(counts, "rb") as file:
            self.counts = mmap.mmap(file.fileno(), 8 * ranks, prot=mmap.PROT_READ)
        environment = {**environment, "LD_PRELOAD": str(shim), "SEND_DELAY_US": str(send_delay_us),
                       "SENT_BYTES_FILE": str(counts)}
        streams = {"cwd": place, "stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        self.start_s = time.monotonic()
        with contextlib.ExitStack() as files:
            def log_of(rank):
                return files.enter_context(open(self.logs / f"stderr-{rank}", "wb"))
            if launched:
                self.processes = [start_ranks.Process([*command, "--nproc", str(ranks)], env=environment,
                                                      stderr=log_of("all"), **streams)]
            else:
                own = environment_of or (lambda rank: {})
                self.processes = start_ranks.start(ranks, command, env=lambda rank: {**environment, **own(rank)},
                                                   stderr=log_of, **streams)

    def pid_of(self, rank, within_s=10):
        """The process that computes as a rank."""
        if not self.launched:
            return self.processes[rank].pid
        end = time.monotonic() + within_s
        while time.monotonic() < end:
            found = [pid for pid in start_ranks.descendants_of(self.processes[0].pid)
                     if start_ranks.rank_of(pid) == rank and not start_ranks.children_of(pid)]
            if found:
                return found[-1]
            time.sleep(0.001)
        raise Hung(f"rank {rank} did not start")

    def steps(self):
        """How many are on record."""
        return max((record["step"] for record in self.records("step")), default=0)

    def records(self, kind):
        return records_of(self.place / "run", kind)

    def sent_bytes(self, rank):
        return struct.unpack_from("q", self.counts, 8 * rank)[0]

    def is_over(self):
        return all([process.has_ended() for process in self.processes])

    def await_phase(self, what, within_s=120):
        """Waits until what() is so."""
        end = time.monotonic() + within_s
        while not what():
            if self.is_over() or time.monotonic() > end:
                raise Hung("the phase was not met: the run " + ("was over" if self.is_over() else "went on"))
            time.sleep(0.0005)

    def await_ends(self, but, within_s):
        """Waits for the processes with other numbers. Returns when the first of all ranks told an error or ended.

        Raises Hung where they do not end in time.
        """
        begin, noticed_s = time.monotonic(), None
        while True:
            ended = [process.has_ended() for process in self.processes]
            if noticed_s is None and (any(ended) or "error: " in self.messages()):
                noticed_s = time.monotonic()
            if all(over for number, over in enumerate(ended) if number != but):
                return noticed_s or time.monotonic()
            if time.monotonic() - begin > within_s:
                left = [number for number, over in enumerate(ended) if not over and number != but]
                raise Hung("hung: " + ("the launcher" if self.launched else f"ranks {left}"))
            time.sleep(0.002)

    def end(self):
        """Ends what is left of it."""
        for process in self.processes:
            process.end()

    def statuses(self):
        return [process.status() for process in self.processes]

    def messages(self, rank=None):
        """Of one rank, or of all; started by train they are all in one file."""
        name = "stderr-*" if rank is None else "stderr-all" if self.launched else f"stderr-{rank}"
        return "".join(path.read_text(errors="replace") for path in sorted(self.logs.glob(name)))


class SmallDisk:
    """A file system in memory of DISK_BYTES, mounted at a folder."""

    def __init__(self, folder):
        self.folder, self.filler = folder, folder / "filler"
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", folder], check=True,
                       capture_output=True)

    def fill(self):
        """Takes all that is free; the run may write meanwhile, so that what was free a moment ago is not had at once."""
        with open(self.filler, "wb") as file:
            length, piece = 0, DISK_BYTES
            while piece >= mmap.PAGESIZE:
                try:
                    os.posix_fallocate(file.fileno(), length, piece)
                    length += piece
                except OSError:
                    piece //= 2

    def empty(self):
        self.filler.unlink(missing_ok=True)

    def close(self, keep):
        """What is kept moves to the folder below."""
        if keep:
            shutil.copytree(self.folder, self.folder.with_name(self.folder.name + "-kept"), symlinks=True)
        subprocess.run(["umount", self.folder], check=True, capture_output=True)


def cut_connections(pid):
    """Shuts down the TCP connections of a process, whose own descriptors are borrowed for that; what listens for new ones is
    left alone. Returns how many."""
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
                if connection.family not in (socket.AF_INET, socket.AF_INET6):
                    continue
                if not connection.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                    connection.shutdown(socket.SHUT_RDWR)
                    cut += 1
    os.close(pidfd)
    return cut


def harm(run, fault, rank, disk):
    """Does it; returns when, by time.monotonic."""
    pid = run.pid_of(rank)
    signals = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "term": signal.SIGTERM}
    if fault in signals:
        os.kill(pid, signals[fault])
    elif fault == "cut":
        run.await_phase(lambda: cut_connections(pid) > 0, within_s=10)  # at the start there may be none yet
    elif fault == "disk":
        disk.fill()
    else:
        most = start_ranks.process_bytes(pid, "VmData") + MEMORY_LEFT_BYTES
        resource.prlimit(pid, resource.RLIMIT_DATA, (most, most))
    return time.monotonic()


def data_bytes(run, within_s):
    """The most private memory that a rank has while a run goes to its end, as far as looking often tells."""
    most, begin = 0, time.monotonic()
    while not run.is_over() and time.monotonic() - begin < within_s:
        most = max([most, *(start_ranks.process_bytes(process.pid, "VmData") for process in run.processes)])
        time.sleep(0.001)
    if any(run.statuses() if run.is_over() else [1]):
        run.end()
        raise Hung(f"a run that was to be measured failed: {run.messages().strip()[-300:]}")
    return most


def other_build(tools, folder):
    """A copy of train that is of another version, by nothing but its name for it."""
    version = subprocess.run([tools / "train", "--version"], capture_output=True, text=True, check=True).stdout.split()[2]
    # The first four bytes, which lie together also where the compiler has made numbers of the text.
    own, other = version[:4].encode(), (version[:2] + ("8" if version[2] == "9" else "9") + version[3]).encode()
    tree = pathlib.Path(folder) / "of-another-build"
    for program in (tools / "train", tools.parent / "libexec" / "trainwright" / "train-engine"):
        content = program.read_bytes()
        if own not in content:
            raise OSError(f"{program.name} does not hold its version {version}")
        copy = tree / program.relative_to(tools.parent)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(content.replace(own, other))
        copy.chmod(0o755)
    return tree / tools.name / "train"
