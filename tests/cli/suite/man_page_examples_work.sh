# Every EXAMPLE of every man page, as written: those of a page in their order, in one folder with the example data.
clidoc json > cli.json
python3 - <<'PYTHON'
import json, os, shutil, signal, subprocess, sys

def restore_sigpipe():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)

run = 0
for entry in json.load(open("cli.json")):
    if entry["tool"] not in os.environ["BUILT_TOOLS"].split():
        continue
    shutil.copytree(os.environ["TRAINWRIGHT_SOURCE_DIR"] + "/examples/data", entry["tool"])
    for command in entry["examples"]:
        done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=entry["tool"], stdin=subprocess.DEVNULL,
                              capture_output=True, preexec_fn=restore_sigpipe)
        # Every stage counts; one in front of head may end by SIGPIPE.
        if done.returncode not in ((0, 141) if "| head" in command else (0,)):
            sys.exit(f"{command}\nstatus {done.returncode}: {done.stderr.decode()}")
        run += 1
assert run >= 10, run
PYTHON
