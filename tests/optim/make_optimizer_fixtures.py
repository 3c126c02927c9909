#!/usr/bin/env python3
"""Makes tests/optim/fixtures/optimizers.json: what published implementations make of small weights in 50 steps.

usage: make_optimizer_fixtures.py OUTPUT_FILE      (needs make_optimizer_fixtures.requirements.txt)

sgd: torch.optim.SGD. lion: lion_pytorch.Lion. muon: torch.optim.Muon for the matrices of the layer, torch.optim.AdamW for
the others; its Newton-Schulz iteration in bf16 as published ("published": true), and in fp64 to compare closely.
adamw8bit: bitsandbytes.optim.AdamW8bit on its CPU backend, and the two maps of its codes; codes are those of the nearest
values, as in its default backend and its CUDA kernels (its library for CPUs looks them up in a table that is coarser near
zero).

Weights and gradients are functions of an element's number and the step, so that the tests have the same; the gradients
do not depend on the weights, so that a difference of rounding stays as small as it is.
"""
import importlib
import inspect
import json
import sys

import bitsandbytes
import lion_pytorch
import numpy
import torch

STEPS = 50
SHAPES = {
    "model.embed_tokens.weight": (12, 8),
    "model.layers.0.input_layernorm.weight": (16,),
    "model.layers.0.self_attn.q_proj.weight": (16, 16),
    "model.layers.0.self_attn.o_proj.weight": (16, 16),
    "model.layers.0.mlp.up_proj.weight": (40, 16),
    "model.layers.0.mlp.down_proj.weight": (16, 40),
    "lm_head.weight": (12, 16),
}
LARGE = {"model.layers.0.mlp.gate_proj.weight": (83, 50), **SHAPES}
MASK = 0xFFFFFFFF


def shares(first, count, step):
    """Numbers in [-1/2, 1/2), multiples of 2^-16, for elements from `first` on."""
    x = (numpy.arange(first, first + count, dtype=numpy.uint64) * 2654435761 + step * 2246822519 + 374761393) & MASK
    x ^= x >> 15
    x = x * 2246822519 & MASK
    x ^= x >> 13
    x = x * 3266489917 & MASK
    return torch.from_numpy(((x >> 16).astype(numpy.float64) / 65536 - 0.5).astype(numpy.float32))


def learning_rate(peak, step):
    return peak * (1 + step % 5) / 4


def run(make, peak, shapes=SHAPES):
    """`make` returns optimizers and what each group's rate is multiplied by, from parameters by name."""
    parameters, first = {}, {}
    count = 0
    for name, shape in shapes.items():
        size = int(numpy.prod(shape))
        parameters[name] = torch.nn.Parameter(shares(count, size, 0).reshape(shape))
        first[name] = count
        count += size
    optimizers = make(parameters)
    for step in range(1, STEPS + 1):
        for name, parameter in parameters.items():
            size = parameter.numel()
            # A part that stays, and one that does not.
            gradient = shares(first[name], size, 1000) + shares(first[name], size, step)
            parameter.grad = gradient.reshape(parameter.shape)
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(peak, step) * group.get("factor", 1)
            optimizer.step()
    # Some elements of each, at equal distances.
    return {name: [round(value, 7) for value in parameter.detach().flatten().tolist()[::max(1, parameter.numel() // 64)]]
            for name, parameter in parameters.items()}


def groups(parameters, decay):
    return [dict(params=[p for p in parameters.values() if p.ndim > 1], weight_decay=decay),
            dict(params=[p for p in parameters.values() if p.ndim == 1], weight_decay=0.0)]


def sgd(momentum, nesterov, decay):
    return lambda parameters: [torch.optim.SGD(groups(parameters, decay), lr=1, momentum=momentum, nesterov=nesterov)]


def lion(betas, decay):
    return lambda parameters: [lion_pytorch.Lion(groups(parameters, decay), lr=1, betas=betas)]


def muon(nesterov, adjust, adamw_factor, momentum=0.95, ns_steps=5):
    def make(parameters):
        hidden = {n: p for n, p in parameters.items() if ".layers." in n and p.ndim == 2}
        others = {n: p for n, p in parameters.items() if n not in hidden}
        adamw = torch.optim.AdamW(groups(others, 0.1), lr=1, betas=(0.9, 0.95), eps=1e-8)
        for group in adamw.param_groups:
            group["factor"] = adamw_factor
        return [torch.optim.Muon(hidden.values(), lr=1, weight_decay=0.1, momentum=momentum, nesterov=nesterov,
                                 adjust_lr_fn=adjust, ns_steps=ns_steps), adamw]
    return make


def adamw8bit(parameters):
    return [bitsandbytes.optim.AdamW8bit(groups(parameters, 0.1), lr=1, betas=(0.9, 0.95), eps=1e-8)]


def quantize_exactly(values, code, absmax_out, codes_out, blocksize):
    """bitsandbytes/backends/default/ops.py, quantize_blockwise."""
    blocks = torch.nn.functional.pad(values.flatten(), (0, -values.numel() % blocksize)).reshape(-1, blocksize)
    absmax = blocks.abs().amax(dim=1)
    codes = torch.bucketize(blocks / absmax.clamp(min=1e-38)[:, None], (code[:-1] + code[1:]) / 2)
    codes_out.copy_(codes.flatten()[:values.numel()].reshape(codes_out.shape))
    absmax_out.copy_(absmax)


def set_iteration_type(name):
    """Has torch.optim.Muon iterate in another type."""
    module = importlib.import_module("torch.optim._muon")
    source = inspect.getsource(ITERATION)
    assert source.count(".bfloat16()") == 1
    scope = dict(module.__dict__)
    exec(source.replace(".bfloat16()", f".{name}()"), scope)  # noqa: S102
    function = scope["_zeropower_via_newtonschulz"]
    module._zeropower_via_newtonschulz = lambda *arguments: function(*arguments).to(torch.float32)


def main():
    cases = []

    def add(optimizer, values, peak, options=None, own=None, **fields):
        cases.append(dict(optimizer=optimizer, peak=peak, options=options or {}, own=own or {}, **fields, values=values))

    add("sgd", run(sgd(0.9, False, 0.0), 0.01), 0.01, dict(beta1=0.9, weight_decay=0.0))
    add("sgd", run(sgd(0.8, True, 0.05), 0.01), 0.01, dict(beta1=0.8, weight_decay=0.05), dict(nesterov=1))
    add("sgd", run(sgd(0.0, False, 0.1), 0.02), 0.02, dict(beta1=0.0, weight_decay=0.1))
    add("lion", run(lion((0.9, 0.99), 0.3), 0.003), 0.003, dict(beta1=0.9, beta2=0.99, weight_decay=0.3))
    add("lion", run(lion((0.95, 0.98), 0.0), 0.001), 0.001, dict(beta1=0.95, beta2=0.98, weight_decay=0.0))
    for kind in ("bfloat16", "double"):
        set_iteration_type(kind)
        published = kind == "bfloat16"
        add("muon", run(muon(True, "match_rms_adamw", 1), 0.004), 0.004, dict(weight_decay=0.1), {}, published=published)
        add("muon", run(muon(False, "original", 0.15, 0.9, 6), 0.02), 0.02, dict(weight_decay=0.1),
            dict(nesterov=0, match_rms_adamw=0, adamw_factor=0.15, momentum=0.9, ns_steps=6), published=published)
    importlib.import_module("bitsandbytes.backends.cpu.ops")._quant_blockwise_fp32_direct = quantize_exactly
    add("adamw8bit", run(adamw8bit, 0.004, LARGE), 0.004, dict(weight_decay=0.1, beta1=0.9, beta2=0.95))
    create_map = bitsandbytes.functional.create_dynamic_map
    content = dict(steps=STEPS, versions=dict(torch=torch.__version__, lion_pytorch="0.2.5",
                                              bitsandbytes=bitsandbytes.__version__),
                   cases=cases, signed_map=create_map(True).tolist(), unsigned_map=create_map(False).tolist())
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(json.dumps(content, separators=(",", ":")).replace('},{"optimizer"', '},\n{"optimizer"') + "\n")


if __name__ == "__main__":
    ITERATION = importlib.import_module("torch.optim._muon")._zeropower_via_newtonschulz
    main()
