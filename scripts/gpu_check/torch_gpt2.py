#!/usr/bin/env python3
"""GPT-2 124M by plain PyTorch: the speed of its training step at 64 samples of 1,024 tokens, eager or compiled.

usage: torch_gpt2.py [--device DEVICE] [--compile] [--tiny]

The loop that its users would write: bf16 autocast, scaled_dot_product_attention, fused AdamW, the gradient norm clipped, the
vocabulary padded to a multiple of 128. Prints one JSON object.
"""
import argparse
import json
import statistics
import time

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.qkv(self.ln_1(x)).chunk(3, dim=2))
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self, vocabulary, width, layers, heads, length):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        for table in (self.tokens, self.positions):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, ids, targets):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        logits = functional.linear(self.norm(x), self.tokens.weight)
        return functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    vocabulary, width, layers, heads, length, batch, steps = (
        (256, 32, 1, 2, 64, 2, 3) if options.tiny else (50304, 768, 12, 12, 1024, 64, 30))
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    model = Gpt2(vocabulary, width, layers, heads, length).to(options.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    forward = torch.compile(model) if options.compile else model
    ids = torch.randint(vocabulary, (batch, length + 1), device=options.device)
    wait = torch.cuda.synchronize if options.device.startswith("cuda") else lambda: None
    times = []
    for _ in range(steps):
        wait()
        before = time.perf_counter()
        with torch.autocast(options.device.split(":")[0], dtype=torch.bfloat16):
            loss = forward(ids[:, :-1], ids[:, 1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        wait()
        times.append(time.perf_counter() - before)
    step_time_s = statistics.median(times[len(times) // 3:])
    tokens_per_s = batch * length / step_time_s
    weights = sum(p.numel() for p in model.parameters()) - model.positions.weight.numel()
    flops_a_token = 6 * weights + 6 * layers * width * length  # causal attention: half of 12 L D T
    print(json.dumps({"tokens_per_s": round(tokens_per_s), "step_time_s": step_time_s, "loss_nats": float(loss.detach()),
                      "tflops": round(tokens_per_s * flops_a_token / 1e12, 2), "compiled": options.compile,
                      "max_memory_bytes": torch.cuda.max_memory_allocated() if options.device.startswith("cuda") else None}))


main()
