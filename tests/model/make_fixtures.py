#!/usr/bin/env python3
"""Makes tests/model/fixtures: tiny models of every family saved by transformers, random ones and trained ones, with
what transformers and PyTorch compute for them in fp32.

usage: make_fixtures.py OUTPUT_DIR      (needs torch, transformers, safetensors)

Each folder holds config.json and model.safetensors as save_pretrained writes them, and expected.safetensors: ids
[sequences, length], logits, and the gradient of the summed next-token cross entropy with respect to each parameter
as gradient.<name>. The sequence is longer than every sliding window and, where rotary positions are scaled, than the
original context.
"""
import pathlib
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from transformers import (GPT2Config, GPT2LMHeadModel, GPTNeoXConfig, GPTNeoXForCausalLM, LlamaConfig, LlamaForCausalLM,
                          MistralConfig, MistralForCausalLM, Qwen2Config, Qwen2ForCausalLM)

LLAMA_SHAPES = {
    # Three query heads on one key head, and a head size that is not hidden_size / heads.
    "untied": dict(vocab_size=101, hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=3,
                   num_key_value_heads=1, head_dim=10, rope_theta=10000.0, rms_norm_eps=1e-5,
                   tie_word_embeddings=False),
    "tied": dict(vocab_size=97, hidden_size=18, intermediate_size=36, num_hidden_layers=2, num_attention_heads=6,
                 num_key_value_heads=2, head_dim=8, rope_theta=500.0, rms_norm_eps=1e-6, tie_word_embeddings=True),
}
GPT2_SHAPES = {
    "gpt2_tanh": dict(vocab_size=97, n_embd=24, n_layer=2, n_head=3, activation_function="gelu_new"),
    "gpt2_erf": dict(vocab_size=89, n_embd=20, n_layer=2, n_head=2, n_inner=28, activation_function="gelu",
                     layer_norm_epsilon=1e-4, tie_word_embeddings=False),
}
SMALL = dict(vocab_size=23, hidden_size=18, intermediate_size=24, num_hidden_layers=2, num_attention_heads=3,
             num_key_value_heads=1, head_dim=8)
# Heads of 32 elements take the kernel that works in blocks, others the one that works by rows.
MISTRAL_SHAPES = {
    "mistral": dict(SMALL, num_hidden_layers=1, head_dim=32, sliding_window=20),
}
QWEN2_SHAPES = {
    "qwen2": dict(SMALL, tie_word_embeddings=True),
    "qwen2_window": dict(SMALL, use_sliding_window=True, sliding_window=11, max_window_layers=1),
}
LONGROPE = dict(rope_type="longrope", rope_theta=10000.0, original_max_position_embeddings=48, factor=4.0,
                short_factor=[1.0, 1.1, 1.2, 1.3], long_factor=[1.0, 2.0, 3.0, 4.5])
# An original context of 32 or 48 positions; the sequence has 96.
ROPE_SHAPES = {
    "biased": dict(attention_bias=True, mlp_bias=True),
    "rope_linear": dict(rope_parameters=dict(rope_type="linear", factor=3.0, rope_theta=500.0)),
    "rope_dynamic": dict(max_position_embeddings=32,
                         rope_parameters=dict(rope_type="dynamic", factor=2.5, rope_theta=10000.0)),
    "rope_yarn": dict(rope_parameters=dict(rope_type="yarn", factor=4.0, rope_theta=10000.0, beta_fast=4.0,
                                           beta_slow=0.5, original_max_position_embeddings=32)),
    "rope_yarn_mscale": dict(rope_parameters=dict(rope_type="yarn", factor=4.0, rope_theta=300.0, mscale=0.7,
                                                  mscale_all_dim=1.3, truncate=False,
                                                  original_max_position_embeddings=32)),
    "rope_llama3": dict(rope_parameters=dict(rope_type="llama3", factor=8.0, rope_theta=100.0, low_freq_factor=1.0,
                                             high_freq_factor=4.0, original_max_position_embeddings=32)),
    "rope_longrope": dict(rope_parameters=LONGROPE),
    "rope_longrope_short": dict(rope_parameters=dict(LONGROPE, original_max_position_embeddings=100,
                                                     attention_factor=0.8)),
}
NEOX_SHAPES = {
    # Half of a head of 6 elements: 3, which are rounded up to two pairs.
    "neox": dict(hidden_act="gelu", rope_parameters=dict(rope_type="default", rope_theta=10000.0,
                                                         partial_rotary_factor=0.5)),
    "neox_sequential": dict(hidden_act="gelu_new", use_parallel_residual=False, tie_word_embeddings=True,
                            attention_bias=False, rope_parameters=dict(rope_type="default", rope_theta=300.0,
                                                                       partial_rotary_factor=1.0)),
    "neox_yarn": dict(hidden_act="gelu", rope_parameters=dict(rope_type="yarn", factor=4.0, rope_theta=10000.0,
                                                              original_max_position_embeddings=24,
                                                              partial_rotary_factor=0.75)),
}


def llama(shape):
    return LlamaForCausalLM(LlamaConfig(**dict(dict(max_position_embeddings=256, attn_implementation="eager",
                                                    bos_token_id=1, eos_token_id=2), **shape)))


def mistral(shape):
    return MistralForCausalLM(MistralConfig(max_position_embeddings=256, attn_implementation="eager", **shape))


def qwen2(shape):
    return Qwen2ForCausalLM(Qwen2Config(max_position_embeddings=256, attn_implementation="eager", **shape))


def neox(shape):
    return GPTNeoXForCausalLM(GPTNeoXConfig(vocab_size=23, hidden_size=18, intermediate_size=28, num_hidden_layers=2,
                                            num_attention_heads=3, max_position_embeddings=256,
                                            attn_implementation="eager", **shape))


def gpt2(shape):
    return GPT2LMHeadModel(GPT2Config(n_positions=128, attn_implementation="eager", bos_token_id=1, eos_token_id=2,
                                      resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, **shape))


def randomize(model):
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():  # large enough that every term of the maths shows
            if parameter.dim() == 1 and not parameter_name.endswith(".bias"):
                parameter.copy_(1 + 0.3 * torch.randn_like(parameter))
            else:
                parameter.copy_(0.3 * torch.randn_like(parameter))
    return torch.randint(0, model.config.vocab_size, (1, 96))  # long enough for both attention kernels


def loss_sum(model, ids, logits):
    return F.cross_entropy(logits[:, :-1].reshape(-1, model.config.vocab_size), ids[:, 1:].reshape(-1), reduction="sum")


def train(model, steps=120):
    """Teaches the model that an id follows from the one before it, but for some that are random."""
    vocab_size = model.config.vocab_size

    def batch(count):
        ids = torch.randint(0, vocab_size, (count, 96))
        for i in range(1, 96):
            if i % 8 > 0:
                ids[:, i] = (7 * ids[:, i - 1] + 3) % vocab_size
        return ids

    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-2)
    for _ in range(steps):
        ids = batch(8)
        loss = loss_sum(model, ids, model(ids).logits) / ids.numel()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"trained to {loss.item():.3f} nats a token")
    return batch(1)


def make(name, build, shape, folder, prepare=randomize):
    torch.manual_seed(len(name))
    model = build(shape).float()
    ids = prepare(model)
    model.zero_grad()
    logits = model(ids).logits
    loss = loss_sum(model, ids, logits)
    loss.backward()
    expected = {"ids": ids, "logits": logits.detach().contiguous(), "loss_sum": loss.detach().reshape(1)}
    for parameter_name, parameter in model.named_parameters():
        # save_pretrained gives the head of GPT-NeoX its name of old.
        in_files = parameter_name.replace("lm_head", "embed_out") if build is neox else parameter_name
        expected["gradient." + in_files] = parameter.grad.contiguous()
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    save_file(expected, folder / "expected.safetensors")


def main():
    folder = pathlib.Path(sys.argv[1])
    llama_shapes = LLAMA_SHAPES | {name: dict(SMALL, num_hidden_layers=1, **shape) for name, shape in ROPE_SHAPES.items()}
    for build, shapes in ((llama, llama_shapes), (mistral, MISTRAL_SHAPES), (qwen2, QWEN2_SHAPES), (gpt2, GPT2_SHAPES),
                          (neox, NEOX_SHAPES)):
        for name, shape in shapes.items():
            make(name, build, shape, folder / name)
    make("mistral_trained", mistral, dict(SMALL, sliding_window=20), folder / "mistral_trained", prepare=train)
    make("neox_trained", neox, NEOX_SHAPES["neox"], folder / "neox_trained", prepare=train)


if __name__ == "__main__":
    main()
