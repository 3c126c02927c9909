# A model of the family ten is divided among ranks, takes adapters beside 4-bit weights, and learns from conversations and by
# --objective grit as those of other families do.
seq 1500 > text
pretokenize -q text | pack -q --chunk 512 -o shards/
for i in 1 2 3 4 5 6 7 8; do
  echo "{\"query\": \"question $i\", \"pos\": [\"answer $i\"], \"neg\": [\"other $i\"]}" >> pairs.jsonl
  echo "{\"text\": [\"question $i\", \"answer $i\"]}" >> talks.jsonl
done
pretokenize -q --records contrastive pairs.jsonl | pack -q --chunk 512 -o pairs/
pretokenize -q --records sft --template grit talks.jsonl | pack -q --chunk 512 -o talks/
cat > ten.json << 'JSON'
{"model_type": "ten", "vocab_size": 512, "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2,
 "num_eigenstates": 16, "num_heads": 2, "selective": true, "windows": [1, 2], "scan_chunk": 16, "max_position_embeddings": 64}
JSON
go() { train -q --threads 1 --steps 2 "$@" > /dev/null; }
ranks=(--data shards --model ten.json --seq 64 --batch 1 --mixed-precision bf16 --exact-world 2)
go "${ranks[@]}" --accum 2 --out one
go "${ranks[@]}" --nproc 2 --zero 2 --dist-timeout 20 --out two
cmp one/latest/model.safetensors two/latest/model.safetensors

go --data shards --seq 64 --batch 1 --init one --lora 2 --quant nf4 --out adapter
go --data talks --seq 64 --batch 1 --init one --out talking
go --data pairs --data talks --batch 2 --accum 1 --init one --out grit
python3 - <<'PYTHON'
import json, struct
def records(run):
    return [json.loads(line) for line in open(run + "/metrics.jsonl")]
for run, objective in (("adapter", "lm"), ("talking", "sft"), ("grit", "grit")):
    plan = records(run)[0]["plan"]
    assert plan["objective"] == objective, (run, plan)
    assert [record["step"] for record in records(run) if record["type"] == "step"] == [1, 2], run
assert json.load(open("grit/latest/embedding.json"))["attention"] == "cccc"
content = open("adapter/latest/adapter_model.safetensors", "rb").read()
names = set(json.loads(content[8:8 + struct.unpack("<Q", content[:8])[0]])) - {"__metadata__"}
modules = {name.rsplit(".lora_", 1)[0].split(".layers.1.")[1] for name in names if ".layers.1." in name}
assert modules == {"cell.in_proj", "cell.selective_proj", "cell.memory", "cell.out_proj", "cell.gate_proj", "mlp.up_proj",
                   "mlp.down_proj"}, modules
PYTHON
evaluate -q --checkpoint adapter --data shards --seq 200 --threads 1 > /dev/null  # longer than it was trained for
fails 2 '--attn bbcc lets tokens see later ones' train -q --data pairs --init one --attn bbcc --steps 1 --threads 1 --out none
test ! -e none
