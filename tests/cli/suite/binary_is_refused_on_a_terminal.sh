# Token streams and shards go to a terminal only by force; text may.
python3 - <<'PYTHON'
import os, pty, subprocess, sys

def status(command):
    master, terminal = pty.openpty()
    process = subprocess.Popen(["bash", "-c", command], stdin=subprocess.DEVNULL, stdout=terminal, stderr=subprocess.PIPE)
    os.close(terminal)
    while True:  # what is written must be read, or the writer blocks
        try:
            if not os.read(master, 65536):
                break
        except OSError:
            break
    message = process.stderr.read().decode()
    return process.wait(), message

open("text", "w").write("to be or not to be\n")
subprocess.run(["pretokenize", "-q", "text", "-o", "tokens"], check=True)
model = os.environ["TRAINWRIGHT_SOURCE_DIR"] + "/examples/data/tiny-checkpoint/model.safetensors"
subprocess.run(["ckpt-compress", "-q", model, "-o", "small"], check=True)
wanted = {f"ckpt-compress {model} -o -": 2, f"ckpt-compress -f {model} -o -": 0, "ckpt-compress -d small -o -": 2, "ckpt-compress -l small": 0,
          "ckpt-compress -d --tensor model.norm.weight small": 2, "pretokenize text": 2, "pretokenize -f text": 0, "pretokenize --to jsonl text": 0, "pack tokens": 2, "pack -f tokens": 0}
for command, expected in wanted.items():
    got, message = status(command)
    if got != expected or (got == 2 and "-f" not in message):
        sys.exit(f"{command}: status {got}, not {expected}: {message}")
PYTHON
