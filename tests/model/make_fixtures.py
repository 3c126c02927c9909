#!/usr/bin/env python3
"""Makes tests/model/fixtures: tiny random Llama and GPT-2 models saved by transformers, with what transformers and PyTorch
compute for them in fp32.

usage: make_fixtures.py OUTPUT_DIR      (needs torch, transformers, safetensors)

Each folder holds config.json and model.safetensors as save_pretrained writes them, and expected.safetensors: ids
[sequences, length], logits, and the gradient of the summed next-token cross entropy with respect to each parameter
as gradient.<name>.
"""
import pathlib
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

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


def llama(shape):
    return LlamaForCausalLM(LlamaConfig(max_position_embeddings=256, attn_implementation="eager", bos_token_id=1,
                                        eos_token_id=2, **shape))


def gpt2(shape):
    return GPT2LMHeadModel(GPT2Config(n_positions=128, attn_implementation="eager", bos_token_id=1, eos_token_id=2,
                                      resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, **shape))


def make(name, build, shape, folder):
    torch.manual_seed(len(name))
    model = build(shape).float()
    vocab_size = model.config.vocab_size
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():  # large enough that every term of the maths shows
            if parameter.dim() == 1 and not parameter_name.endswith(".bias"):
                parameter.copy_(1 + 0.3 * torch.randn_like(parameter))
            else:
                parameter.copy_(0.3 * torch.randn_like(parameter))
    ids = torch.randint(0, vocab_size, (1, 96))  # long enough for both attention kernels
    logits = model(ids).logits
    loss = F.cross_entropy(logits[:, :-1].reshape(-1, vocab_size), ids[:, 1:].reshape(-1), reduction="sum")
    loss.backward()
    expected = {"ids": ids, "logits": logits.detach().contiguous(), "loss_sum": loss.detach().reshape(1)}
    for parameter_name, parameter in model.named_parameters():
        expected["gradient." + parameter_name] = parameter.grad.contiguous()
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    save_file(expected, folder / "expected.safetensors")


if __name__ == "__main__":
    for fixture_name, fixture_shape in LLAMA_SHAPES.items():
        make(fixture_name, llama, fixture_shape, pathlib.Path(sys.argv[1]) / fixture_name)
    for fixture_name, fixture_shape in GPT2_SHAPES.items():
        make(fixture_name, gpt2, fixture_shape, pathlib.Path(sys.argv[1]) / fixture_name)
