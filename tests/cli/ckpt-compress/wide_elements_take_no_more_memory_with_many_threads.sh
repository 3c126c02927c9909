# A tensor of 64-bit elements takes less than 256 MiB of memory with sixteen threads, both ways.
python3 - <<'PYTHON'
import json, random, struct
size = 1 << 28
header = json.dumps({"w": {"dtype": "F64", "shape": [4096, size // 8 // 4096], "data_offsets": [0, size]}}).encode()
piece = random.Random(7).randbytes(1 << 20)
with open("wide.safetensors", "wb") as file:
    file.write(struct.pack("<Q", len(header)) + header)
    for _ in range(size >> 20):
        file.write(piece)
PYTHON
within_256_mib ckpt-compress -q --threads 16 -o wide.twc.safetensors wide.safetensors
within_256_mib ckpt-compress -q -d --threads 16 -o restored.safetensors wide.twc.safetensors
cmp wide.safetensors restored.safetensors
ckpt-compress -q --threads 1 -o one.twc.safetensors wide.safetensors
cmp wide.twc.safetensors one.twc.safetensors
