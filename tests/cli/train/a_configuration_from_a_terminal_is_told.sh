# A configuration that is typed is said to be read, so that nobody waits for one who waits.
python3 - <<'PYTHON'
import os, pty, subprocess
parent, child = pty.openpty()
process = subprocess.Popen(["train", "--config", "/dev/stdin", "--print-config"], stdin=child, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE)
os.close(child)
os.write(parent, b"lr: 0.0125\n\x04")  # one Ctrl-D ends it
config, said = (stream.decode() for stream in process.communicate(timeout=60))
os.close(parent)
assert process.returncode == 0 and "reading /dev/stdin from the terminal" in said, said
assert "lr: 0.0125" in config, config
PYTHON
