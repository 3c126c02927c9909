# The presets of GRIT with --dry-run: what they resolve to, and whether such a run fits, without training anything.
python3 - <<'PYTHON'
import json
with open("pairs.jsonl", "w") as pairs, open("talks.jsonl", "w") as talks:
    for i in range(260):  # no fewer than a step of grit-7b
        pairs.write(json.dumps({"query": f"what is {i}", "pos": [f"it is {i}"], "neg": [f"it is {i + 1}"]}) + "\n")
        talks.write(json.dumps({"text": [f"say {i}", f"here is {i}"]}) + "\n")
PYTHON
pretokenize -q --records contrastive pairs.jsonl | pack -q --chunk 512 -o pairs/
pretokenize -q --records sft --template grit talks.jsonl | pack -q --chunk 512 -o talks/
cat > tiny.json << 'END_OF_MODEL'
{"model_type": "llama", "vocab_size": 512, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1,
 "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 256, "rms_norm_eps": 1e-5,
 "rope_theta": 10000, "tie_word_embeddings": false, "hidden_act": "silu"}
END_OF_MODEL
told() { # told NAME ARGUMENT...
  local name=$1
  shift
  train -q --dry-run --explain --threads 1 --summary "$name.json" "$@" > "$name.txt"
}
told fast --preset grit-fast --objective grit --data pairs --model tiny.json --steps 2 --batch 2 --accum 2
told toy --preset grit-toy --data pairs --model tiny.json
told 7b --preset grit-7b --data pairs --data talks --zero 2 --world 8 --bandwidth 50GB --device-tflops 400 \
  --device-memory 200GiB  # on paper: nothing is run
train -q --objective grit --data pairs --model tiny.json --steps 1 --batch 2 --threads 1 --out base
told lora --preset grit-7b-lora --init base --data pairs --data talks --query-max-len 32 --passage-max-len 64 \
  --batch 4 --accum 2 --gen-batch 2

python3 - <<'PYTHON'
import json
def read(name):
    summary = json.load(open(f"{name}.json"))
    return summary, {option["option"]: option for option in summary["options"]}
def value(options, name):
    return str(options[name]["value"])

# grit-fast is the example of the guide: 4 workers, pinned memory, checkpointing on, bf16, compilation as --compile auto.
# Memory is pinned where there is a GPU to copy it to.
summary, options = read("fast")
assert value(options, "workers") == "4", options["workers"]
assert value(options, "checkpoint-activations") == "full", options["checkpoint-activations"]
assert value(options, "mixed-precision") == "bf16", options["mixed-precision"]
assert "pin" in options and summary["fits"]

summary, options = read("toy")
assert summary["steps"] == 5 * 260 // 2, summary["steps"]
assert float(value(options, "lr")) == 1e-5

summary, options = read("7b")
assert value(options, "steps") == "1253", options["steps"]
assert value(options, "batch") == "32" and value(options, "accum") == "8" and value(options, "gen-batch") == "4"
world = summary["world"]["worlds"][0]
plain = world["sharding"][0]
assert world["ranks"] == 8 and world["verdict"] == "fits", world["reason"]
layers = 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336)
parameters = plain["memory_bytes"]["parameters"] / 4
assert layers < parameters < 1.01 * layers, parameters
texts = 256 * (1 + 2)  # of a rank: queries, each with two passages
assert plain["gathered"]["sent_bytes"] >= 7 * texts * 4096 * 4, plain["gathered"]
tokens = plain["tokens_per_s"] * plain["step_time_s"]
assert abs(tokens / (8 * 8 * (32 * (256 + 2 * 2048) + 4 * 2048)) - 1) < 1e-6, tokens

# Two matrices of rank 16 beside each of the four of the layer.
summary, options = read("lora")
assert summary["trainable_parameters"] == 4 * 16 * (32 + 32), summary["trainable_parameters"]
assert float(value(options, "lora-alpha")) == 64 and summary["fits"]
PYTHON
test ! -e runs
