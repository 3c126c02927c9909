# A tensor of 1 GiB takes less than 256 MiB of memory, both ways, with two threads; under a sanitizer, which holds freed memory
# back, less than twice that.
export MOST_MIB=256
if ldd "$(command -v ckpt-compress)" | grep -q "lib.san"; then MOST_MIB=512; fi
python3 - << 'PYTHON'
import json, os, resource, struct, subprocess

limit = int(os.environ["MOST_MIB"])

rows, columns, size = 4096, 131072, 1 << 30
header = json.dumps({"w": {"dtype": "BF16", "shape": [rows, columns], "data_offsets": [0, size]}}).encode()
with open("big.safetensors", "wb") as file:
    file.write(struct.pack("<Q", len(header)) + header)
    begin = file.tell()
    # A few rows of weights in all that is 0.
    for row in (0, 1000, rows - 1):
        file.seek(begin + row * columns * 2)
        file.write(b"".join(struct.pack("<H", 0x3C00 + (97 * i * (row + 1) % 2048)) for i in range(columns)))

def run(*command):
    subprocess.run(command, check=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10

for level in ([], ["--fast"]):
    took = run("ckpt-compress", "-q", "-f", "--threads", "2", *level, "-o", "big.twc.safetensors", "big.safetensors")
    assert took < limit, f"{level}: {took} MiB"
took = run("ckpt-compress", "-q", "-d", "--threads", "2", "-o", "restored.safetensors", "big.twc.safetensors")
assert took < limit, f"-d: {took} MiB"
subprocess.run(["cmp", "big.safetensors", "restored.safetensors"], check=True)
PYTHON
