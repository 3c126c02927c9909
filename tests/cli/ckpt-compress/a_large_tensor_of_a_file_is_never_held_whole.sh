# A tensor of half a GiB takes less than 256 MiB of memory, both ways, with two threads; under a sanitizer, which holds freed memory
# back, less than twice that.
export MOST_MIB=256
if ldd "$(command -v ckpt-compress)" | grep -q "lib.san"; then MOST_MIB=512; fi
python3 - << 'PYTHON'
import json, os, resource, struct, subprocess

limit = int(os.environ["MOST_MIB"])

rows, columns, size = 2048, 131072, 1 << 29
header = json.dumps({"w": {"dtype": "BF16", "shape": [rows, columns], "data_offsets": [0, size]}}).encode()
with open("big.safetensors", "wb") as file:
    file.write(struct.pack("<Q", len(header)) + header)
    begin = file.tell()
    # Weights in all the rows that a predictor is tried on, whose columns differ in scale, and zeros between.
    exponents = [100 + i * i % 23 for i in range(columns)]
    for row in range(0, rows, 64):
        file.seek(begin + row * columns * 2)
        mantissas = range(97 * row, 97 * row + columns)
        file.write(struct.pack(f"<{columns}H", *(e << 7 | 37 * m & 127 for e, m in zip(exponents, mantissas))))
    file.truncate(begin + size)

def run(*command):
    subprocess.run(command, check=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10

for level in (["--fast"], []):
    took = run("ckpt-compress", "-q", "-f", "--threads", "2", *level, "-o", "big.twc.safetensors", "big.safetensors")
    assert took < limit, f"{level}: {took} MiB"
took = run("ckpt-compress", "-q", "-d", "--threads", "2", "-o", "restored.safetensors", "big.twc.safetensors")
assert took < limit, f"-d: {took} MiB"
listed = subprocess.run(["ckpt-compress", "-l", "big.twc.safetensors"], check=True, capture_output=True, text=True).stdout
assert "rank-one" in listed, listed
subprocess.run(["cmp", "big.safetensors", "restored.safetensors"], check=True)
PYTHON
