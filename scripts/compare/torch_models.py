"""The two models of the side-by-side in plain PyTorch, as a careful user writes them: fused attention, one product for
queries, keys and values, no dropout. Weights come from a checkpoint in Hugging Face's layout."""
import json
import os

import safetensors.torch
import torch
from torch import nn
from torch.nn import functional as F


def attend(q_bhtk, k_bhtk, v_bhtk):
    out_bhtk = F.scaled_dot_product_attention(q_bhtk, k_bhtk, v_bhtk, is_causal=True)
    return out_bhtk.transpose(1, 2).flatten(2)


class LayerNorm(nn.Module):
    def __init__(self, width, epsilon):
        super().__init__()
        self.weight, self.epsilon = nn.Parameter(torch.ones(width)), epsilon

    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, None, self.epsilon)


class NanoGptBlock(nn.Module):
    def __init__(self, config):
        super().__init__()
        width = config["n_embd"]
        self.heads = config["n_head"]
        self.ln_1, self.ln_2 = (LayerNorm(width, config["layer_norm_epsilon"]) for _ in range(2))
        self.c_attn, self.attn_proj = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.c_fc, self.mlp_proj = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        q, k, v = (part.unflatten(2, (self.heads, -1)).transpose(1, 2)
                   for part in self.c_attn(self.ln_1(x)).chunk(3, dim=2))
        x = x + self.attn_proj(attend(q, k, v))
        return x + self.mlp_proj(F.gelu(self.c_fc(self.ln_2(x))))


class NanoGpt(nn.Module):
    """nanoGPT without biases: learned positions, LayerNorm, exact GELU, head tied to the embedding."""

    def __init__(self, config):
        super().__init__()
        width = config["n_embd"]
        self.wte, self.wpe = nn.Embedding(config["vocab_size"], width), nn.Embedding(config["n_positions"], width)
        self.h = nn.ModuleList(NanoGptBlock(config) for _ in range(config["n_layer"]))
        self.ln_f = LayerNorm(width, config["layer_norm_epsilon"])
        self.lm_head = nn.Linear(width, config["vocab_size"], bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, ids_bt):
        x = self.wte(ids_bt) + self.wpe(torch.arange(ids_bt.shape[1]))
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))

    def load(self, tensors):
        names = {"attn.c_attn": "c_attn", "attn.c_proj": "attn_proj", "mlp.c_fc": "c_fc", "mlp.c_proj": "mlp_proj"}
        own = dict(self.named_parameters())
        for name, tensor in tensors.items():
            name = name.removeprefix("transformer.")
            if name.endswith(".bias"):
                assert not tensor.any()
                continue
            for theirs, ours in names.items():
                if theirs in name:  # Hugging Face keeps these as [in, out]
                    name, tensor = name.replace(theirs, ours), tensor.t()
            if name != "lm_head.weight":
                own.pop(name).data.copy_(tensor)
        assert not own, own.keys()


class RmsNorm(nn.Module):
    def __init__(self, width, epsilon):
        super().__init__()
        self.weight, self.epsilon = nn.Parameter(torch.ones(width)), epsilon

    def forward(self, x):
        return F.rms_norm(x.to(self.weight.dtype), self.weight.shape, self.weight, self.epsilon).to(x.dtype)


def rotate(x_bhtk, cos_tk, sin_tk):
    low, high = x_bhtk.chunk(2, dim=3)
    return x_bhtk * cos_tk + torch.cat((-high, low), dim=3) * sin_tk


class LlamaBlock(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, wide = config["hidden_size"], config["intermediate_size"]
        self.heads, self.kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
        self.sizes = [heads * width // self.heads for heads in (self.heads, self.kv_heads, self.kv_heads)]
        self.input_norm, self.mlp_norm = (RmsNorm(width, config["rms_norm_eps"]) for _ in range(2))
        self.qkv, self.o = nn.Linear(width, sum(self.sizes), bias=False), nn.Linear(width, width, bias=False)
        self.gate_up, self.down = nn.Linear(width, 2 * wide, bias=False), nn.Linear(wide, width, bias=False)

    def forward(self, x, cos_tk, sin_tk):
        q, k, v = (part.unflatten(2, (heads, -1)).transpose(1, 2)
                   for part, heads in zip(self.qkv(self.input_norm(x)).split(self.sizes, dim=2),
                                          (self.heads, self.kv_heads, self.kv_heads)))
        q, k = (rotate(part, cos_tk.to(part.dtype), sin_tk.to(part.dtype)) for part in (q, k))
        if self.kv_heads != self.heads:
            k, v = (part.repeat_interleave(self.heads // self.kv_heads, dim=1) for part in (k, v))
        x = x + self.o(attend(q, k, v))
        gate, up = self.gate_up(self.mlp_norm(x)).chunk(2, dim=2)
        return x + self.down(F.silu(gate) * up)


class Llama(nn.Module):
    """Llama. With fewer heads of keys and values than of queries these are repeated, which keeps attention fused."""

    def __init__(self, config):
        super().__init__()
        width = config["hidden_size"]
        self.embed = nn.Embedding(config["vocab_size"], width)
        self.layers = nn.ModuleList(LlamaBlock(config) for _ in range(config["num_hidden_layers"]))
        self.norm = RmsNorm(width, config["rms_norm_eps"])
        self.lm_head = nn.Linear(width, config["vocab_size"], bias=False)
        if config.get("tie_word_embeddings"):
            self.lm_head.weight = self.embed.weight
        theta = config.get("rope_theta") or config["rope_parameters"]["rope_theta"]
        size = width // config["num_attention_heads"]
        positions = torch.arange(config["max_position_embeddings"])
        angles = torch.outer(positions.double(), theta ** (-torch.arange(0, size, 2).double() / size))
        angles = torch.cat((angles, angles), dim=1)
        self.register_buffer("cos_tk", angles.cos().float(), persistent=False)
        self.register_buffer("sin_tk", angles.sin().float(), persistent=False)

    def forward(self, ids_bt):
        x, length = self.embed(ids_bt), ids_bt.shape[1]
        for layer in self.layers:
            x = layer(x, self.cos_tk[:length], self.sin_tk[:length])
        return self.lm_head(self.norm(x))

    def load(self, tensors):
        tensors = {name.removeprefix("model."): tensor for name, tensor in tensors.items()}
        own = dict(self.named_parameters())
        own.pop("embed.weight").data.copy_(tensors["embed_tokens.weight"])
        own.pop("norm.weight").data.copy_(tensors["norm.weight"])
        if "lm_head.weight" in own:  # not where it is the embedding
            own.pop("lm_head.weight").data.copy_(tensors["lm_head.weight"])
        for layer in range(len(self.layers)):
            def take(*names, prefix=f"layers.{layer}."):
                return torch.cat([tensors[f"{prefix}{name}.weight"] for name in names])
            for name, value in {
                    "input_norm": take("input_layernorm"),
                    "mlp_norm": take("post_attention_layernorm"),
                    "qkv": take("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
                    "o": take("self_attn.o_proj"),
                    "gate_up": take("mlp.gate_proj", "mlp.up_proj"),
                    "down": take("mlp.down_proj")}.items():
                own.pop(f"layers.{layer}.{name}.weight").data.copy_(value)
        assert not own, own.keys()


def load(folder, positions=None):
    """The model of a checkpoint folder; of a Llama with the rotations of so many positions instead of all of its own."""
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    if positions is not None:
        config["max_position_embeddings"] = positions
    model = {"gpt2": NanoGpt, "llama": Llama}[config["model_type"]](config)
    model.load(safetensors.torch.load_file(os.path.join(folder, "model.safetensors")))
    return model
