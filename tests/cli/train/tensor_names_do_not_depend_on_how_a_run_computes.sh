# Levers change how a run computes, not what a checkpoint's tensors are called: each run begins with any other's weights.
seq 400 > text
pretokenize -q text | pack -q --chunk 256 -o shards/
cat > tiny.json << 'END'
{"model_type": "llama", "vocab_size": 512, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1,
 "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 256, "rms_norm_eps": 1e-5,
 "rope_theta": 10000, "tie_word_embeddings": false, "hidden_act": "silu"}
END
set -- -q --data shards --steps 1 --batch 1 --seq 64 --threads 1
train "$@" --model tiny.json --out plain > /dev/null
train "$@" --init plain --mixed-precision bf16 --checkpoint-activations full --offload gradients --out levers > /dev/null
train "$@" --init levers --nproc 2 --zero 2 --out ranks > /dev/null
python3 - <<'PYTHON'
import json, struct
def names(run):
    with open(f"{run}/latest/model.safetensors", "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    return {name: (tensor["dtype"], tensor["shape"]) for name, tensor in header.items() if name != "__metadata__"}
plain = names("plain")
layer = ["input_layernorm", "mlp.down_proj", "mlp.gate_proj", "mlp.up_proj", "post_attention_layernorm",
         "self_attn.k_proj", "self_attn.o_proj", "self_attn.q_proj", "self_attn.v_proj"]
expected = {f"model.layers.0.{name}.weight" for name in layer}
assert set(plain) == expected | {"model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"}, sorted(plain)
for run in ("levers", "ranks"):
    assert names(run) == plain, run
PYTHON
