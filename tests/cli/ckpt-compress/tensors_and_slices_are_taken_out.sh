# Single tensors and rows, as bytes of the original.
original=$TRAINWRIGHT_SOURCE_DIR/examples/data/tiny-checkpoint/model.safetensors
status_of() { local status=0; "$@" > out 2> err || status=$?; echo "$status"; }
ckpt-compress -q "$original" -o small
python3 - "$original" <<'PYTHON'
import json, subprocess, sys
data = open(sys.argv[1], "rb").read()
size = int.from_bytes(data[:8], "little")
header, values = json.loads(data[8:8 + size]), data[8 + size:]
def run(*arguments):
    return subprocess.run(["ckpt-compress", "-q", "-d", *arguments], capture_output=True, check=True).stdout
for name, tensor in header.items():
    if name == "__metadata__":
        continue
    begin, end = tensor["data_offsets"]
    assert run("--tensor", name, "--to", "raw", "small") == values[begin:end], name
    row = (end - begin) // tensor["shape"][0]
    for text, first, last in (("[3:7]", 3, 7), ("[:5]", 0, 5), ("[9:]", 9, tensor["shape"][0]), ("[4:4]", 4, 4), ("[:]", 0, tensor["shape"][0])):
        assert run("--slice", name + text, "--to", "raw", "small") == values[begin + first * row:begin + last * row], name + text
name = "model.embed_tokens.weight"
begin = header[name]["data_offsets"][0]
both = run("--slice", name + "[2:4]", "--tensor", "model.norm.weight", "small")
size = int.from_bytes(both[:8], "little")
got = json.loads(both[8:8 + size])
assert got[name]["shape"] == [2, 32] and got[name]["dtype"] == "BF16" and got["__metadata__"] == header["__metadata__"], got
first, last = got[name]["data_offsets"]
assert both[8 + size + first:8 + size + last] == values[begin + 128:begin + 256]
PYTHON
ckpt-compress -q -d --tensor model.norm.weight --summary counts.json small -o norm
python3 -c 'import json; j = json.load(open("counts.json")); assert 0 < j["bytes_read"] < 8000, j'
cat small | ckpt-compress -q -d --tensor model.norm.weight | cmp - norm
test "$(status_of ckpt-compress -d --tensor nothing small)" = 2
grep -q "holds no tensor 'nothing'" err
for wrong in 'model.norm.weight[0:33]' 'model.norm.weight[3:2]' 'model.norm.weight[-1:2]' 'model.norm.weight[1]' 'model.norm.weight' '[0:1]' \
             'model.norm.weight[0:99999999999999999999]'; do
  test "$(status_of ckpt-compress -d --slice "$wrong" small)" = 2
done
