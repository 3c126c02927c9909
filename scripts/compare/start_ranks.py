#!/usr/bin/env python3
"""Starts a command as the ranks of one run on this machine, with the variables that torchrun sets.

usage: start_ranks.py RANKS COMMAND [ARGUMENT...]

Waits for all; ends with the status of the first rank, by number, that failed. What starts them is none of the ranks: the
first of them serves the store.
"""
import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time


class Process(subprocess.Popen):
    """A process whose end tells when it was and how much memory it took at most."""

    end_s = None  # by time.monotonic, as far as has_ended is asked often
    peak_bytes = 0

    def has_ended(self):
        if self.returncode is None:
            pid, status, usage = os.wait4(self.pid, os.WNOHANG)
            if pid == self.pid:
                self.returncode, self.end_s = os.waitstatus_to_exitcode(status), time.monotonic()
                self.peak_bytes = usage.ru_maxrss << 10
        return self.returncode is not None

    def status(self):
        """As a shell tells it, of a process that has ended."""
        return self.returncode if self.returncode >= 0 else 128 - self.returncode

    def end(self):
        """Ends what is left of it, with all that it has started."""
        for pid in [] if self.has_ended() else [self.pid, *descendants_of(self.pid)]:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        while not self.has_ended():
            time.sleep(0.001)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start(ranks, command, environment=None, **options):
    """The processes, in the order of the ranks.

    command is a list, or a function of the rank that gives that rank's. options are Popen's; a value that is a function gets
    the rank and gives that rank's.
    """
    port = free_port()
    processes = []
    for rank in range(ranks):
        variables = {"RANK": rank, "WORLD_SIZE": ranks, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": ranks,
                     "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        own = {name: value(rank) if callable(value) else value for name, value in options.items()}
        inherited = own.pop("env", None) or environment or os.environ
        processes.append(Process(command(rank) if callable(command) else command,
                                 env={**inherited, **{name: str(value) for name, value in variables.items()}}, **own))
    return processes


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


def process_bytes(pid, name):
    """A size of /proc/PID/status, such as VmRSS; 0 of a process that has ended."""
    with contextlib.suppress(OSError):
        match = re.search(rf"^{name}:\s+(\d+) kB$", pathlib.Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
        return int(match.group(1)) << 10 if match else 0
    return 0


def main():
    if len(sys.argv) < 3 or not sys.argv[1].isdigit():
        sys.exit(__doc__)
    statuses = [process.wait() for process in start(int(sys.argv[1]), sys.argv[2:])]
    failed = [status for status in statuses if status != 0]
    sys.exit(0 if not failed else failed[0] if failed[0] > 0 else 128 - failed[0])


if __name__ == "__main__":
    main()
