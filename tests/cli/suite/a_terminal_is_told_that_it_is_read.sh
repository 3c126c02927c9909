# A tool that reads standard input says so where that is a terminal, so that nobody waits for one who waits.
python3 - <<'PYTHON'
import os, pty, subprocess
for command in (["pretokenize", "-o", "out.tokens"], ["generate", "--checkpoint", "missing"]):
    parent, child = pty.openpty()
    process = subprocess.Popen(command, stdin=child, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    os.close(child)
    os.write(parent, b"\x04")
    said = process.communicate(timeout=60)[1].decode()
    os.close(parent)
    assert "reading standard input from the terminal" in said, (command, said)
with open("text.txt", "w") as file:
    file.write("a line\n")
said = subprocess.run(["pretokenize", "-o", "piped.tokens"], stdin=open("text.txt"), stderr=subprocess.PIPE, check=True)
assert b"terminal" not in said.stderr, said.stderr
PYTHON
