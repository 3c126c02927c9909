"""What the script that imports torch calls, and which of its lines run."""
import atexit
import json
import os
import pathlib
import sys

calls, lines = set(), set()
main = sys.modules["__main__"]
script = getattr(main, "__file__", None)


def record(call):
    calls.add(call)


def trace(frame, _event, _argument):
    if frame.f_code.co_filename != script:
        return None
    lines.add(frame.f_lineno)
    return trace


def write():
    with open(os.environ["TRAINWRIGHT_STAND_IN_LOG"], "a", encoding="utf-8") as log:
        log.write(json.dumps({"script": pathlib.Path(script).name, "arguments": sys.argv[1:], "calls": sorted(calls),
                              "lines": sorted(lines)}) + "\n")


if script is not None:  # not python3 -c
    atexit.register(write)
    sys.settrace(trace)
    frame = sys._getframe()
    while frame is not None:  # settrace is for functions called from now on; the script itself has begun
        if frame.f_code.co_filename == script:
            frame.f_trace = trace
        frame = frame.f_back
