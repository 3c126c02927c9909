# A tool that reads standard input says so where that is a terminal, so that nobody waits for one who waits.
python3 - <<'PYTHON'
import os, pty, subprocess
parent, child = pty.openpty()
process = subprocess.Popen(["pretokenize", "-o", "out.tokens"], stdin=child, stderr=subprocess.PIPE)
os.close(child)
os.write(parent, b"a line\n\x04")  # one Ctrl-D ends it
said = process.communicate(timeout=60)[1].decode()
os.close(parent)
assert process.returncode == 0 and "reading standard input from the terminal" in said, said
with open("text.txt", "w") as file:
    file.write("a line\n")
said = subprocess.run(["pretokenize", "-o", "piped.tokens"], stdin=open("text.txt"), stderr=subprocess.PIPE, check=True)
assert b"terminal" not in said.stderr, said.stderr
PYTHON
