#!/usr/bin/env python3
"""Makes tests/model/fixtures/lora_*: adapters saved by peft for the models that make_fixtures.py made, with what peft and
PyTorch compute for them in fp32.

usage: make_lora_fixtures.py FIXTURES_DIR [NAME...]      (needs torch, transformers, peft, safetensors; made with peft 0.21.2)

Each folder holds adapter_config.json and adapter_model.safetensors as save_pretrained writes them, and
expected.safetensors: ids, logits, merged_logits of merge_and_unload, loss_sum, and the gradient of each parameter that is
trained as gradient.<name in the adapter's file>.
"""
import pathlib
import sys

import torch
import torch.nn.functional as F
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "lib/model"))
from python.configuration_ten import TenConfig  # noqa: E402
from python.modeling_ten import TenForCausalLM  # noqa: E402

AutoConfig.register("ten", TenConfig)
AutoModelForCausalLM.register(TenConfig, TenForCausalLM)

ADAPTERS = {
    "lora_untied": ("untied", dict(r=3, lora_alpha=5, target_modules="all-linear")),
    "lora_tied": ("tied", dict(r=2, lora_alpha=4, target_modules=["q_proj", "v_proj", "down_proj"], use_rslora=True)),
    "lora_gpt2": ("gpt2_tanh", dict(r=2, lora_alpha=3, target_modules=["c_attn", "mlp.c_proj"], fan_in_fan_out=True)),
    "lora_neox": ("neox", dict(r=3, lora_alpha=4, target_modules="all-linear")),
    "lora_neox_sequential": ("neox_sequential", dict(r=2, lora_alpha=5, target_modules=["query_key_value", "dense"])),
    "lora_ten": ("ten_windows", dict(r=3, lora_alpha=5, target_modules=["cell.in_proj", "memory", "cell.out_proj",
                                                                        "cell.gate_proj", "up_proj", "down_proj"])),
    "dora_untied": ("untied", dict(r=3, lora_alpha=5, target_modules="all-linear", use_dora=True)),
    "dora_gpt2": ("gpt2_tanh", dict(r=2, lora_alpha=3, target_modules=["c_attn", "mlp.c_proj"], fan_in_fan_out=True,
                                    use_dora=True, use_rslora=True)),
    "dora_neox": ("neox", dict(r=3, lora_alpha=4, target_modules=["query_key_value", "dense"], use_dora=True)),
    "saved_untied": ("untied", dict(r=2, lora_alpha=4, target_modules=["q_proj"],
                                    modules_to_save=["lm_head", "embed_tokens"])),
    "saved_tied": ("tied", dict(r=2, lora_alpha=4, target_modules=["v_proj"], modules_to_save=["embed_tokens"],
                                ensure_weight_tying=True)),
    "saved_neox": ("neox", dict(r=2, lora_alpha=4, target_modules=["dense"], modules_to_save=["lm_head"])),
}


def name_in_file(parameter_name):
    """As save_pretrained names a parameter."""
    name = parameter_name.replace(".modules_to_save.default.", ".").replace(".default", "")
    return name.removesuffix(".weight") if "lora_magnitude_vector" in name else name


def make(name, base, options, root):
    torch.manual_seed(len(name))
    model = AutoModelForCausalLM.from_pretrained(root / base, attn_implementation="eager").float()
    model = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", **options))
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            if "lora_magnitude_vector" in parameter_name:
                parameter.mul_(1 + 0.2 * torch.randn_like(parameter))
            elif "lora_" in parameter_name:
                parameter.copy_(0.3 * torch.randn_like(parameter))
            elif parameter.requires_grad:
                parameter.add_(0.1 * torch.randn_like(parameter))
    ids = torch.randint(0, model.config.vocab_size, (1, 48))
    logits = model(ids).logits
    loss = F.cross_entropy(logits[:, :-1].reshape(-1, logits.shape[-1]), ids[:, 1:].reshape(-1), reduction="sum")
    loss.backward()
    expected = {"ids": ids, "logits": logits.detach().contiguous(), "loss_sum": loss.detach().reshape(1)}
    for parameter_name, parameter in model.named_parameters():
        if parameter.requires_grad:
            expected["gradient." + name_in_file(parameter_name)] = parameter.grad.contiguous()
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    model.peft_config["default"].base_model_name_or_path = base
    model.save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)
    with torch.no_grad():
        expected["merged_logits"] = model.merge_and_unload()(ids).logits.contiguous()
    save_file(expected, folder / "expected.safetensors")


if __name__ == "__main__":
    for fixture_name, (base_name, lora_options) in ADAPTERS.items():
        if len(sys.argv) > 2 and fixture_name not in sys.argv[2:]:
            continue
        make(fixture_name, base_name, lora_options, pathlib.Path(sys.argv[1]))
