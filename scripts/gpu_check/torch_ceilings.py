#!/usr/bin/env python3
"""How fast torch's libraries are at the shapes of the models: products by library and padding, attention by backend
and by the packed call.

usage: torch_ceilings.py {gemms|attention} [--device DEVICE] [--tiny]

Times are medians of groups of calls between two waits for the device. Prints one JSON object, rates in TFLOP/s.
"""
import argparse
import itertools
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
# name: batch, heads, heads of keys and values, length, elements of a head. Llama's models have grouped heads.
SPANS = {"gpt2 1k": (64, 12, 12, 1024, 64), "1b 8k": (2, 32, 32, 8192, 64), "1b 32k": (1, 32, 32, 32768, 64),
         "8b 8k": (2, 32, 32, 8192, 128), "8b 32k": (1, 32, 32, 32768, 128), "1b 8k grouped": (2, 32, 8, 8192, 64),
         "1b 32k grouped": (1, 32, 8, 32768, 64), "8b 8k grouped": (2, 32, 8, 8192, 128),
         "8b 32k grouped": (1, 32, 8, 32768, 128)}
DOCUMENTS = (16384, 8192, 4096, 2048, 1024, 512, 256, 256)  # lengths of those of one row of 32,768 tokens
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


def rates_of(name, forward, inputs, flops, device):
    """\\returns forward and forward with backward by name; null where the backend does not take it"""
    try:
        d_out = torch.randn_like(forward())

        def both():
            torch.autograd.grad(forward(), inputs, d_out)

        return {name: round(flops / time_of(forward, device) / 1e12, 3),
                f"{name} with backward": round(3.5 * flops / time_of(both, device) / 1e12, 3)}
    except RuntimeError:
        return {name: None}


def random_heads(device, *shape):
    return torch.randn(*shape, device=device, dtype=torch.bfloat16, requires_grad=True)


def dense(name, span, device):
    """Spans of one length, by each backend."""
    batch, heads, kv_heads, length, size = span
    q, k, v = (random_heads(device, batch, count, length, size) for count in (heads, kv_heads, kv_heads))
    rates = {}
    for backend, kernel in BACKENDS.items():
        def forward(kernel=kernel):
            with sdpa_kernel(kernel):
                return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=kv_heads != heads)

        if backend != "math" or length <= 1024:
            flops = 2 * batch * heads * length * length * size  # two products over half of the scores
            rates |= rates_of(f"{name} {backend}", forward, (q, k, v), flops, device)
    return rates


def packed(name, lengths, span, device):
    """One row of documents, by the call that the CUDA backend trains with."""
    _, heads, kv_heads, _, size = span
    q, k, v = (random_heads(device, sum(lengths), count, size) for count in (heads, kv_heads, kv_heads))
    starts = torch.tensor([0, *itertools.accumulate(lengths)], dtype=torch.int32, device=device)

    def forward():
        return torch.ops.aten._flash_attention_forward(q, k, v, starts, starts, max(lengths), max(lengths), 0.0, True, False)[0]

    flops = sum(2 * heads * length * length * size for length in lengths)
    return rates_of(name, forward, (q, k, v), flops, device)


def attention(device, tiny):
    """Causal: dense and packed spans of one length, and documents of several in a row."""
    rates = {}
    for name, span in SPANS.items():
        if tiny:
            span = (1, 2, 1 if "grouped" in name else 2, 64, 16)
        rates |= dense(name, span, device)
        rates |= packed(f"{name} packed", [span[3]] * span[0], span, device)
        if name.endswith("32k grouped"):
            rates |= packed(f"{name} packed documents", [32, 16, 16] if tiny else DOCUMENTS, span, device)
    return {"tflops": rates}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("gemms", "attention"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    print(json.dumps({"gemms": gemms, "attention": attention}[options.what](options.device, options.tiny)))


main()
