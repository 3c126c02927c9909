#!/usr/bin/env python3
"""How fast torch's libraries are at the shapes of the models: products by library and padding, attention by backend.

usage: torch_ceilings.py {gemms|attention} [--device DEVICE] [--tiny]

Times are medians of groups of calls between two events of the device. Prints one JSON object, rates in TFLOP/s.
"""
import argparse
import json
import statistics
import time

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

TOKENS = 65536
# name: columns out, columns in. The head of GPT-2 as it is and padded; llama's MLP of 1B and of 8B.
PRODUCTS = {"gpt2 qkv": (2304, 768), "gpt2 up": (3072, 768), "gpt2 down": (768, 3072), "gpt2 head 50257": (50257, 768),
            "gpt2 head 50304": (50304, 768), "1b gate_up": (11264, 2048), "1b down": (2048, 5632),
            "8b qkv": (6144, 4096), "8b gate_up": (28672, 4096), "8b down": (4096, 14336)}
# name: batch, heads, length, elements of a head
SPANS = {"gpt2 1k": (64, 12, 1024, 64), "1b 8k": (2, 32, 8192, 64), "1b 32k": (1, 32, 32768, 64), "8b 8k": (2, 32, 8192, 128),
         "8b 32k": (1, 32, 32768, 128)}
BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION,
            "efficient": SDPBackend.EFFICIENT_ATTENTION, "math": SDPBackend.MATH}


def time_of(call, device, groups=5, calls=3):
    call()
    wait = torch.cuda.synchronize if device.startswith("cuda") else lambda: None
    wait()
    times = []
    for _ in range(groups):
        before = time.perf_counter()
        for _ in range(calls):
            call()
        wait()
        times.append((time.perf_counter() - before) / calls)
    return statistics.median(times)


def gemms(device, tiny):
    """Forward, and the two products of the backward pass."""
    rates = {}
    libraries = ("cublas", "cublaslt") if device.startswith("cuda") else ("cpu",)
    for name, (columns, width) in PRODUCTS.items():
        rows = 32 if tiny else TOKENS if "gpt2" in name else 16384
        columns, width = (64, 64) if tiny else (columns, width)
        x, w, d = (torch.randn(shape, device=device, dtype=torch.bfloat16) for shape in ((rows, width), (columns, width),
                                                                                       (rows, columns)))
        flops = 2 * rows * columns * width
        for library in libraries:
            if library != "cpu":
                torch.backends.cuda.preferred_blas_library(library)
            for what, call in (("out", lambda x=x, w=w: x @ w.t()), ("d_in", lambda d=d, w=w: d @ w),
                               ("d_weight", lambda d=d, x=x: d.t() @ x)):
                rates[f"{name} {what} {library}"] = round(flops / time_of(call, device) / 1e12, 3)
    return {"tflops": rates}


def attention(device, tiny):
    """Causal, forward and forward with backward; null where a backend does not take it."""
    rates = {}
    for name, (batch, heads, length, size) in SPANS.items():
        if tiny:
            batch, heads, length, size = 1, 2, 64, 16
        q, k, v = (torch.randn(batch, heads, length, size, device=device, dtype=torch.bfloat16, requires_grad=True)
                   for _ in range(3))
        d_out = torch.randn_like(q)
        flops = 2 * batch * heads * length * length * size  # two products over half of the scores
        for backend, kernel in BACKENDS.items():
            if backend == "math" and length > 1024:
                continue

            def forward(q=q, k=k, v=v, kernel=kernel):
                with sdpa_kernel(kernel):
                    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

            def both(q=q, k=k, v=v, d_out=d_out, forward=forward):
                torch.autograd.grad(forward(), (q, k, v), d_out)

            try:
                rates[f"{name} {backend}"] = round(flops / time_of(forward, device) / 1e12, 3)
                rates[f"{name} {backend} with backward"] = round(3.5 * flops / time_of(both, device) / 1e12, 3)
            except RuntimeError:
                rates[f"{name} {backend}"] = None
    return {"tflops": rates}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("gemms", "attention"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    print(json.dumps({"gemms": gemms, "attention": attention}[options.what](options.device, options.tiny)))


main()
