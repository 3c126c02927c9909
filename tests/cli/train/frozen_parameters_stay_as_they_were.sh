# --freeze leaves parameters bit for bit, is part of the plan and resumes; --lr-scale and --no-decay change what they name.
printf '{"text": "one two three four"}\n{"text": "five six seven"}\n' > data.jsonl
pretokenize -q --tokenizer "$TRAINWRIGHT_SOURCE_DIR/examples/data/mistral-v1.model" data.jsonl | pack -q --chunk 16 -o shards/
train -q --progress never --data shards --model llama-1m --steps 1 --batch 1 --seq 16 --threads 1 --mixed-precision no --out first
init=first/checkpoints/step-00000001
options="-q --progress never --data shards --init $init --steps 4 --batch 1 --seq 16 --threads 1 --mixed-precision no"

# changed A B: names of the tensors that differ.
changed() {
  python3 - "$1/model.safetensors" "$2/model.safetensors" <<'PYTHON'
import json, struct, sys
def tensors(path):
    data = open(path, "rb").read()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return {name: data[8 + size + e["data_offsets"][0]:8 + size + e["data_offsets"][1]] for name, e in header.items()}
a, b = map(tensors, sys.argv[1:])
assert a.keys() == b.keys()
print("\n".join(sorted(name for name in a if a[name] != b[name])))
PYTHON
}
last=checkpoints/step-00000004
train $options --out whole
changed $init whole/$last > all
grep -q embed_tokens all
grep -q layers.0.mlp all

train $options --freeze 'embed_tokens,layers.0,q_proj' --out frozen
changed $init frozen/$last > trained
test -s trained
if grep -e embed_tokens -e 'layers\.0\.' -e q_proj trained; then exit 1; fi
grep -q 'freeze: "embed_tokens,layers.0,q_proj"' frozen/config.yaml
python3 - <<'PYTHON'
import json
def flops(run):
    return [json.loads(l) for l in open(run + "/metrics.jsonl") if '"type":"step"' in l.replace(" ", "")][0]
whole, frozen = flops("whole"), flops("frozen")
share = frozen["model_flops_per_s"] * frozen["step_time_s"] / (whole["model_flops_per_s"] * whole["step_time_s"])
assert share < 0.95, share
PYTHON

train $options --freeze 'embed_tokens,layers.0,q_proj' --max-minutes 0.0000001 --out parts
fails 2 "\-\-freeze" train -q --progress never --resume --out parts --freeze lm_head
train -q --progress never --resume --out parts
cmp parts/$last/model.safetensors frozen/$last/model.safetensors
cmp parts/$last/trainwright_state.safetensors frozen/$last/trainwright_state.safetensors

train $options --lr-scale norm=50 --out scaled
changed whole/$last scaled/$last > scaled.txt
grep -q norm scaled.txt
train $options --no-decay embed_tokens --weight-decay 10 --out kept
train $options --weight-decay 10 --out decayed
changed kept/$last decayed/$last > kept.txt
grep -q embed_tokens kept.txt

fails 2 "means no trained parameter" train $options --freeze wte --out bad
grep -q "model.embed_tokens.weight" err
fails 2 "leaves no parameter to train" train $options --freeze '*' --out bad
fails 2 "has no meaning with adapters" train $options --lora 2 --freeze norm --out bad
fails 2 "no PATTERN=FACTOR" train $options --lr-scale norm=0 --out bad
test ! -e bad

# LoRA+: the rate of the adapters' second factors.
train $options --lora 2 --lr-scale lora_B=16 --out plus
train $options --lora 2 --out plain
test -s plus/$last/adapter_model.safetensors
test -s plain/$last/adapter_model.safetensors
if cmp -s plus/$last/adapter_model.safetensors plain/$last/adapter_model.safetensors; then exit 1; fi
