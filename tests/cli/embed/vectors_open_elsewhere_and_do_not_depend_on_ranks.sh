# A .npy file is what NumPy's format says, raw and JSON lines hold the same numbers, and two ranks write what one writes.
head -c 20000 "$TRAINWRIGHT_SOURCE_DIR/examples/data/tinyshakespeare.txt" > text.txt
pretokenize -q text.txt | pack -q --chunk 256 -o shards/
train -q --steps 1 --batch 1 --seq 64 --threads 1 --out run > /dev/null
model=run
printf 'to be\nor not to be\n\nthat is the question\n' > lines.txt
for name in out.npy out.f32 out.jsonl; do embed -q --checkpoint "$model" lines.txt -o "$name" --threads 1; done
embed -q --checkpoint "$model" < lines.txt --threads 1 > piped.jsonl
cmp out.jsonl piped.jsonl
embed -q --checkpoint "$model" lines.txt --threads 1 --format raw -o /dev/stdout > redirected.f32
cmp out.f32 redirected.f32
embed -q --checkpoint "$model" lines.txt --threads 1 --format npy | cat > piped.npy
cmp out.npy piped.npy
python3 - <<'PYTHON'
import ast, json, struct
npy = open("out.npy", "rb").read()
assert npy[:8] == b"\x93NUMPY\x01\x00"
length = struct.unpack("<H", npy[8:10])[0]
assert (10 + length) % 64 == 0
header = ast.literal_eval(npy[10:10 + length].decode())
assert header["descr"] == "<f4" and header["fortran_order"] is False
rows, columns = header["shape"]
assert rows == 4
raw = open("out.f32", "rb").read()
assert raw[64:] == npy[10 + length:] and struct.unpack("<QI", raw[8:20]) == (rows, columns)
values = struct.unpack(f"<{rows * columns}f", raw[64:])
lines = [json.loads(line)["embedding"] for line in open("out.jsonl")]
assert struct.pack(f"<{rows * columns}f", *[number for line in lines for number in line]) == raw[64:]
for row in range(rows):
    length = sum(number ** 2 for number in values[row * columns:(row + 1) * columns])
    assert abs(length - (row != 2)) < 1e-5, (row, length)
PYTHON
embed -q --checkpoint "$model" lines.txt -o two.npy --nproc 2 --threads 1 --batch-tokens 8
embed -q --checkpoint "$model" lines.txt -o one.npy --threads 1 --batch-tokens 8
cmp one.npy two.npy
