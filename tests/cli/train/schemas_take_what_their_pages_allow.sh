# The JSON Schemas of a run's records and of a checkpoint's metadata take fields of later releases, what earlier ones lack, and null for
# what is not finite.
seq 400 > text
pretokenize -q text | pack -q --chunk 64 -o shards/
train -q --data shards --model ten-nano --steps 1 --batch 1 --seq 64 --threads 1 --z-loss 1e-4 --label-smoothing 0.1 --out run > /dev/null
PYTHONPATH="$TRAINWRIGHT_SOURCE_DIR/tests/train" python3 - << 'PYTHON'
import json, os
from check_metrics import problems, resolved

def schema_of(path, kind):
    schema = json.load(open(os.path.join(os.environ["TRAINWRIGHT_SOURCE_DIR"], "lib", path)))
    return resolved(schema["$defs"][kind], schema["$defs"])

records = [json.loads(line) for line in open("run/metrics.jsonl")]
for record in records:
    schema = schema_of("run/metrics.schema.json", record["type"])
    record["of_a_later_release"] = 1
    if record["type"] == "step":
        for name in ("loss_nats", "z_loss_nats", "smoothing_nats"):
            record[name] = None if name in record else exit(f"no {name}")
    found = list(problems(record, schema, record["type"]))
    assert not found, found
assert {"run_begin", "step", "run_end"} <= {record["type"] for record in records}
metadata = json.load(open("run/latest/metadata.json"))
metadata["of_a_later_release"] = metadata["system_info"]["of_a_later_release"] = 1
del metadata["resumable"]
found = list(problems(metadata, schema_of("checkpoint/checkpoint_metadata.schema.json", "checkpoint"), "metadata.json"))
assert not found, found
PYTHON
