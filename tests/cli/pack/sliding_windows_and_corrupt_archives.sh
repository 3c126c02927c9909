# Long rows of an .npz are cut into windows that overlap by chunk less stride, and corrupt archives are skipped.
python3 - <<'PYTHON'
import io
import random
import struct
import zipfile


def npy(shape, values, code):
    header = "{'descr': '<%s', 'fortran_order': False, 'shape': %s, }" % (code, shape)
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    form = {"i4": "i"}[code]
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack("<%d%s" % (len(values), form), *values)


random.seed(5)
rows, columns = 5, 100
ids = [[random.randrange(1, 500) for _ in range(columns)] for _ in range(rows)]
lengths = [100, 40, 17, 64, 99]
for name in ("one", "two", "three", "cut", "flipped"):
    with zipfile.ZipFile(name + ".npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("input_ids.npy", npy((rows, columns), sum(ids, []), "i4"))
        archive.writestr("attention_mask.npy", npy((rows, columns), [int(c < n) for n in lengths for c in range(columns)], "i4"))
        archive.writestr("sequence_lengths.npy", npy((rows,), lengths, "i4"))
data = open("cut.npz", "rb").read()
open("cut.npz", "wb").write(data[: len(data) // 2])
data = bytearray(open("flipped.npz", "rb").read())
data[200] ^= 8
open("flipped.npz", "wb").write(data)
open("empty.npz", "wb").close()

chunk, stride = 32, 12
with open("expected", "w") as expected:
    for row, length in zip(ids, lengths):
        begin = 0
        while True:
            window = row[begin : min(begin + chunk, length)]
            print(window, file=expected)
            if begin + chunk >= length:
                break
            begin += stride
PYTHON
pack -q --vocab 500 --mode none --chunk 32 --stride 12 --level 1 one.npz -o windows.tws
pack -q --cat --json windows.tws | python3 -c '
import json, sys
for line in sys.stdin:
    chunk = json.loads(line)
    print(chunk["segments"][0]["ids"] if "ids" in chunk["segments"][0] else chunk["ids"])
' > windows
cmp windows expected

pack --vocab 500 --chunk 32 --stride 12 one.npz cut.npz flipped.npz two.npz empty.npz three.npz -o none.tws 2> messages && exit 1 || test $? = 3
test ! -e none.tws
pack --vocab 500 --chunk 32 --stride 12 --on-error skip --summary summary.json cut.npz one.npz flipped.npz two.npz empty.npz three.npz -o some.tws 2> messages
pack -q --vocab 500 --chunk 32 --stride 12 one.npz two.npz three.npz -o sound.tws
cmp some.tws sound.tws
test "$(grep -c 'is left out' messages)" = 3
grep -q '3 of 6 inputs are corrupt' messages
python3 - <<'PYTHON'
import json
summary = json.load(open("summary.json"))
assert (summary["files"], summary["files_skipped"]) == (3, 3), summary
assert summary["tokens"] == summary["input_tokens"] + summary["tokens_repeated"], summary
assert summary["input_tokens"] == 3 * (100 + 40 + 17 + 64 + 99), summary
PYTHON
pack --vocab 500 --from npz --on-error skip cut.npz empty.npz -o none.tws 2> messages && exit 1 || test $? = 3
pack --on-error skip < one.npz > none.tws 2> messages && exit 1 || test $? = 2
pack -q --vocab 500 --mode concat --stride 8 --chunk 32 one.npz -o none.tws 2> messages && exit 1 || test $? = 2
test "$(pack --vocab 500 --on-error skip --stride 40 --chunk 32 one.npz -o none.tws 2>&1 | grep -c 'more than --chunk')" = 1

# What was packed with a stride says so, and how much is repeated; a set has one stride.
pack -q --vocab 500 --chunk 32 --stride 12 --summary summary.json one.npz -o overlapping/
pack --info --json overlapping > of-folder
pack --info --json < overlapping/shard-*.tws > of-pipe
pack --info overlapping | grep -q 'begin 12 tokens apart, 320 tokens are repeats'
pack -q --vocab 500 --chunk 32 one.npz -o plain/
pack --info --json plain > of-plain
python3 - <<'PYTHON'
import json
summary = json.load(open("summary.json"))
lengths = [100, 40, 17, 64, 99]
repeated = sum(20 * len(range(12, length - 20, 12)) for length in lengths)
for name in ("of-folder", "of-pipe"):
    info = json.load(open(name))
    assert (info["stride"], info["tokens_repeated"]) == (12, repeated), info
    assert info["tokens"] == sum(lengths) + repeated, info
assert (summary["stride"], summary["tokens_repeated"]) == (12, repeated), summary
assert not {"stride", "tokens_repeated"} & set(json.load(open("of-plain")))
PYTHON
cp overlapping/MANIFEST.json before.json
fails 3 'has --stride 12, and what is to be appended has 32' pack -q --vocab 500 --chunk 32 --append one.npz -o overlapping/
grep -q 'append with --stride 12' err
fails 3 'has --stride 12, and what is to be appended has 16' pack -q --vocab 500 --chunk 32 --stride 16 --append one.npz -o overlapping/
fails 3 'append without --stride' pack -q --vocab 500 --chunk 32 --stride 12 --append one.npz -o plain/
cmp overlapping/MANIFEST.json before.json
pack -q --vocab 500 --chunk 32 --stride 32 --append one.npz -o plain/
pack -q --vocab 500 --chunk 32 --stride 12 --append one.npz -o overlapping/
test "$(pack --info --json overlapping | python3 -c 'import json, sys; print(json.load(sys.stdin)["tokens_repeated"])')" = \
  "$(python3 -c 'import json; print(2 * json.load(open("of-folder"))["tokens_repeated"])')"
