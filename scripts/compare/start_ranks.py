#!/usr/bin/env python3
"""Starts a command as the ranks of one run on this machine, with the variables that torchrun sets.

usage: start_ranks.py RANKS COMMAND [ARGUMENT...]

Waits for all; ends with the status of the first rank, by number, that failed. What starts them is none of the ranks: the
first of them serves the store.
"""
import os
import socket
import subprocess
import sys


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start(ranks, command, environment=None, **options):
    """The processes, in the order of the ranks.

    options are Popen's; a value that is a function gets the rank and gives that rank's.
    """
    port = free_port()
    processes = []
    for rank in range(ranks):
        variables = {"RANK": rank, "WORLD_SIZE": ranks, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": ranks,
                     "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        own = {name: value(rank) if callable(value) else value for name, value in options.items()}
        processes.append(subprocess.Popen(
            command, env={**(environment or os.environ), **{name: str(value) for name, value in variables.items()}},
            **own))
    return processes


def main():
    if len(sys.argv) < 3 or not sys.argv[1].isdigit():
        sys.exit(__doc__)
    statuses = [process.wait() for process in start(int(sys.argv[1]), sys.argv[2:])]
    failed = [status for status in statuses if status != 0]
    sys.exit(0 if not failed else failed[0] if failed[0] > 0 else 128 - failed[0])


if __name__ == "__main__":
    main()
