# Where no run of grit made a model, records to embed are measured as its folder says that it embeds, or as embed does.
grit_sets
grit=(-q --objective grit --data pairs/ --batch 4 --accum 1 --attn cccc --threads 1)
train "${grit[@]}" --model llama-1m --steps 1 --out base > /dev/null
train "${grit[@]}" --init base --steps 2 --lora 2 --pooling lasttoken --projection 8 --query-max-len 48 --out adapter > /dev/null
train -q --merge adapter --out merged > /dev/null
for family in llama-1m ten-nano; do
  train -q --data talks/ --objective sft --model $family --steps 1 --batch 1 --seq 64 --threads 1 --out $family > /dev/null
done
for model in adapter merged llama-1m ten-nano; do
  evaluate -q --checkpoint $model --data pairs/ --threads 1 > $model.json
done
python3 - <<'PYTHON'
import json
adapter, merged, llama, ten = (json.load(open(name + ".json")) for name in ("adapter", "merged", "llama-1m", "ten-nano"))
spec = adapter["embedding"]
assert (spec["pooling"], spec["attention"], spec["projection"], spec["query_max_len"]) == ("lasttoken", "cccc", 8, 48), spec
assert merged["embedding"] == spec, (merged["embedding"], spec)
assert abs(merged["loss_nats"] - adapter["loss_nats"]) < 1e-3 * adapter["loss_nats"], (merged, adapter)
for model in (llama, ten):
    spec = model["embedding"]
    assert (spec["pooling"], spec["attention"], spec["projection"]) == ("mean", "cccc", 0), spec
    assert spec["passage_max_len"] == model["seq"], model
PYTHON
