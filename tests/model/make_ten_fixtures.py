#!/usr/bin/env python3
"""Makes tests/model/fixtures/ten_*: tiny models of the family ten with what the formulas give for them in float64.

usage: make_ten_fixtures.py OUTPUT_DIR      (needs torch, safetensors)

Each folder holds config.json and model.safetensors as checkpoints have them, and expected.safetensors: ids [1, tokens] of packed
documents, span_starts with the end of the last, logits, loss_sum of the documents' own tokens, and the gradient of the loss
with respect to each parameter as gradient.<name>. They come from scripts/compare/torch_ten.py: a loop over the tokens of each
document, alone, and autograd.
"""
import json
import pathlib
import sys

import torch
from safetensors.torch import save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "scripts/compare")]
import torch_ten  # noqa: E402

COMMON = {"architectures": ["TenForCausalLM"], "model_type": "ten", "vocab_size": 29, "hidden_size": 12,
          "intermediate_size": 20, "num_hidden_layers": 2, "num_eigenstates": 8, "num_heads": 2, "init": "lru",
          "min_modulus": 0.9, "max_modulus": 0.999, "max_angle": 6.283185307179586, "selective": False, "conv_kernel": 4,
          "depth_decay": True, "layer_memory": True, "windows": [], "scan_chunk": 7, "dynamics_rate": 0.1,
          "layer_norm_eps": 1e-5, "max_position_embeddings": 96, "tie_word_embeddings": True, "use_cache": True,
          "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "float32"}
# Documents shorter than the convolution and than the windows are among them, and one of many chunks.
DOCUMENTS = [1, 40, 2, 3, 33, 17]
# Changes of the shape, tokens of the documents, and a seed with which no parameter's gradient is a small difference of large
# numbers: fp32 gives all of them to 5e-6.
MODELS = {
    "ten_compat": ({"init": "compat", "conv_kernel": 0, "depth_decay": False, "layer_memory": False}, [96], 0),
    "ten_compat_pro": ({"init": "compat", "num_hidden_layers": 3, "num_heads": 4}, DOCUMENTS, 11),
    "ten_lru": ({"conv_kernel": 0, "layer_memory": False, "tie_word_embeddings": False}, DOCUMENTS, 12),
    "ten_lru_pro": ({"num_heads": 1, "layer_norm_eps": 1e-4}, DOCUMENTS, 13),
    "ten_selective_compat": ({"init": "compat", "selective": True, "conv_kernel": 3, "layer_memory": False}, DOCUMENTS, 14),
    "ten_selective_lru": ({"selective": True}, DOCUMENTS, 15),
    "ten_windows": ({"windows": [1, 2, 4, 8]}, DOCUMENTS, 16),
    "ten_windows_selective": ({"init": "compat", "selective": True, "conv_kernel": 0, "windows": [2, 6]}, DOCUMENTS, 17),
}


def make(name, changes, lengths, seed, folder):
    config = {**COMMON, **changes}
    generator = torch.Generator().manual_seed(seed)
    model = torch_ten.Ten(config)
    torch_ten.random_weights(model, generator)
    weights = {key: value.clone() for key, value in model.state_dict().items()}
    model = model.double()
    ids = torch.randint(0, config["vocab_size"], (sum(lengths),), generator=generator)
    starts = [sum(lengths[:i]) for i in range(len(lengths) + 1)]
    loss = torch_ten.loss_sum(model, torch_ten.packed(ids, starts))
    loss.backward()
    with torch.no_grad():
        logits = torch.cat([model(ids[None, begin:end])[0] for begin, end in zip(starts, starts[1:])])
    expected = {"ids": ids[None], "span_starts": torch.tensor(starts), "logits": logits[None].float(),
                "loss_sum": loss.detach().float().reshape(1),
                **{f"gradient.{key}": parameter.grad.float() for key, parameter in model.named_parameters()}}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    save_file(expected, folder / "expected.safetensors")
    largest = max(value.abs().max().item() for value in expected.values())
    print(f"{name}: {sum(value.numel() for value in weights.values())} parameters, loss {loss.item():.3f}, "
          f"largest logit {logits.abs().max().item():.1f}, largest number {largest:.1f}")


def main():
    torch.set_num_threads(1)
    for name, (changes, lengths, seed) in MODELS.items():
        make(name, changes, lengths, seed, pathlib.Path(sys.argv[1]) / name)


if __name__ == "__main__":
    main()
