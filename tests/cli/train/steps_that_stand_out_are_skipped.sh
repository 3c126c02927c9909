# --skip-loss-z and --skip-grad-z skip updates, count and tell them, and are resumed with the windows they judge by.
python3 - > data.jsonl <<'PYTHON'
import json
for i in range(400):
    print(json.dumps({"text": " ".join(["one two three four five six"] * 3) if i % 57 else "zebra quartz jumps vex " * 5}))
PYTHON
pretokenize -q --tokenizer bytes data.jsonl | pack -q --chunk 64 -o shards/
options="--progress never --data shards --model llama-1m --steps 180 --batch 1 --seq 16 --threads 1 --mixed-precision no
         --lr 1e-3 --skip-loss-z 2.5 --skip-grad-z 4 --log-every 1 --save-every 150"
train $options --out whole 2> err
grep -q "skipped: its .* standard deviations above the mean of 128 steps" err
python3 - <<'PYTHON'
import json
steps = [json.loads(line) for line in open("whole/metrics.jsonl")]
steps = [step for step in steps if step["type"] == "step"]
assert len(steps) == 180
assert all(step["loss_z"] is None and not step["skipped"] for step in steps[:127])
for i, step in enumerate(steps[127:], 127):
    window = [s["loss_nats"] for s in steps[i - 127:i + 1]]
    mean = sum(window) / 128
    z = (window[-1] - mean) / (sum((v - mean) ** 2 for v in window) / 128) ** 0.5
    assert abs(step["loss_z"] - z) < 1e-6, (step, z)
    assert step["skipped"] == (step["loss_z"] > 2.5 or step["grad_norm_z"] > 4)
assert steps[-1]["outlier_steps"] == sum(step["skipped"] for step in steps) > 0
PYTHON
train $options -q --max-minutes 0.0000001 --out parts
train -q --progress never --resume --out parts
cmp {parts,whole}/checkpoints/step-00000180/model.safetensors

# From a checkpoint whose windows are full and have gone round.
cp -r whole late
rm -rf late/checkpoints/step-00000180 late/complete.json
train -q --progress never --resume --out late
cmp {late,whole}/checkpoints/step-00000180/model.safetensors
cmp {late,whole}/checkpoints/step-00000180/trainwright_state.safetensors

# Ranks judge alike, and so does a run in bf16 that is resumed.
for how in "--nproc 2" "--mixed-precision bf16"; do
  train -q ${options/--mixed-precision no/} $how --out ranks
  cp -r ranks again
  rm -rf again/checkpoints/step-00000180 again/complete.json
  train -q --progress never --resume ${how/--mixed-precision bf16/} --out again
  cmp {again,ranks}/checkpoints/step-00000180/trainwright_state.safetensors
  rm -r ranks again
done
fails 2 "\-\-skip-loss-z" train -q --data shards --model llama-1m --skip-loss-z 12 --out bad
