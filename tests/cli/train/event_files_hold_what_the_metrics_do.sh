# The event files of a run that is resumed with other intervals, or begun anew in the folder of one that died, have a point for
# each record of metrics.jsonl and no other: TensorBoard's data server forgets nothing by itself.
seq 400 | sed 's/$/ bottles of beer on the wall/' > text
pretokenize -q text | pack -q --chunk 256 -o shards/
begin() { # begin ARGUMENT...
  train -q --model neox-tiny --data shards --eval-data shards --seq 64 --batch 4 --threads 1 --out run "$@"
}
compare() {
  python3 - << 'PYTHON'
import json, os, struct

def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at

def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            size, at = varint(data, at) if key & 7 == 2 else ({1: 8, 5: 4}[key & 7], at)
            value, at = data[at:at + size], at + size
        yield key >> 3, value

points = []
for name in sorted(os.listdir("run/tb")):
    data = open(f"run/tb/{name}", "rb").read()
    while data:
        size, = struct.unpack("<Q", data[:8])
        event = dict(fields(data[12:12 + size]))
        points += [(dict(fields(value))[1].decode(), event.get(2, 0)) for _, value in fields(event.get(5, b""))]
        data = data[16 + size:]
records = [json.loads(line) for line in open("run/metrics.jsonl")]
for kind, tag in ("step", "loss/train"), ("eval", "loss/eval"):
    wanted = [record["step"] for record in records if record["type"] == kind]
    found = [step for of, step in points if of == tag]
    assert found == wanted, (tag, found, wanted)
PYTHON
}
begin --steps 8 --save-every 4 --log-every 1 --eval-every 2
compare
rm -r run/checkpoints/step-00000008 run/complete.json
train -q --resume --out run --log-every 4 --eval-every 4
compare
rm -r run/checkpoints/* run/latest
begin --steps 2 --log-every 2 --eval-every 0
compare
