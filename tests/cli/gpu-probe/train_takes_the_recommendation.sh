# The fragment is a configuration of train, as it stands and with a model of the user's.
gpu-probe --quick --disk-size 0 --device cpu --recommend > machine.yaml
train --config machine.yaml --print-config > effective.yaml
python3 - <<'PYTHON'
def read(path):
    lines = (line.strip() for line in open(path))
    return {key: value.strip().strip('"\'') for key, value in (line.split(":", 1) for line in lines if line and line[0] != "#")}
fragment, effective = read("machine.yaml"), read("effective.yaml")
assert {"device", "threads", "workers", "pin", "attn-backend"} <= set(fragment), fragment
for key, value in fragment.items():
    assert effective[key] == value, (key, value, effective.get(key))
PYTHON
pretokenize -q "$TRAINWRIGHT_SOURCE_DIR/examples/data/tinyshakespeare.txt" | pack -q --chunk 1024 -o shards/
train --config machine.yaml --batch 1 --accum 1 --steps 1 --dry-run > /dev/null
gpu-probe --quick --disk-size 0 --device cpu --model nanogpt-10m --seq 64 --recommend > other.yaml
grep -qx 'model: "nanogpt-10m"' other.yaml
grep -qx 'seq: 64' other.yaml
train --config other.yaml --batch 1 --accum 1 --steps 1 --dry-run > /dev/null
