# What breaks a rule of safetensors is exit status 3, and nothing is written.
python3 - <<'PYTHON'
import json, pathlib, subprocess, sys
def file(header, data=b"", size=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if size is None else size).to_bytes(8, "little") + text + data
u8 = {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}
wrong = {
    "empty": b"", "short": b"\1\0\0", "huge header": file({}, size=100_000_001), "endless header": file({}, size=2**63),
    "no JSON": file(b"{"), "an array": file(b"[]"), "a blank first": file(b" {}"), "a newline last": file(b"{}\n"),
    "not UTF-8": file(b'{"\xff":1}'), "twice": file(b'{"a":%s,"a":%s}' % ((json.dumps(u8).encode(),) * 2), b"1234"),
    "metadata twice": file(b'{"__metadata__":{"a":"1","a":"2"}}'), "numbers in metadata": file({"__metadata__": {"a": 1}}),
    "cut": file({"a": u8}, b"123"), "more behind": file({"a": u8}, b"12345"),
    "hole": file({"a": {**u8, "data_offsets": [1, 5]}}, b"12345"),
    "overlap": file({"a": u8, "b": {**u8, "data_offsets": [2, 6]}}, b"123456"),
    "backwards": file({"a": {**u8, "data_offsets": [4, 0]}}, b"1234"), "size": file({"a": {**u8, "shape": [5]}}, b"1234"),
    "overflow": file({"a": {**u8, "shape": [2**32, 2**32], "data_offsets": [0, 0]}}),
    "negative": file({"a": {**u8, "shape": [-4]}}, b"1234"), "half a byte": file({"a": {"dtype": "F4", "shape": [1], "data_offsets": [0, 1]}}, b"1"),
    "dtype": file({"a": {**u8, "dtype": "F12"}}, b"1234"), "deep": file(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
}
for name, content in wrong.items():
    pathlib.Path("in.safetensors").write_bytes(content)
    for how in (["in.safetensors"], ["-", "-o", "out.safetensors"]):
        done = subprocess.run(["ckpt-compress", *how], stdin=open("in.safetensors"), capture_output=True, text=True)
        if done.returncode != 3 or "ckpt-compress: error: " not in done.stderr or len(done.stderr) > 500:
            sys.exit(f"{name} {how}: status {done.returncode}: {done.stderr[:500]}")
    if sorted(p.name for p in pathlib.Path(".").iterdir()) != ["in.safetensors"]:
        sys.exit(f"{name}: left {list(pathlib.Path('.').iterdir())}")
PYTHON
