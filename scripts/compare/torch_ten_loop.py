#!/usr/bin/env python3
"""Trains or scans with PyTorch, as one contestant of ten.py.

usage: torch_ten_loop.py --what ten|llama|mamba2|scan [--init CHECKPOINT | --shape SHAPE.json] [--chunks CHUNKS.jsonl --seed N]
                         --seq T --batch B [--channels K] [--compile MODE] [--threads N]

ten: torch_ten.py with torch_ten_chunked.py's recurrence. llama: torch_models.py's. mamba2: transformers' Mamba2 of the shape.
All take the samples that `train` takes, in its order; each is one document. scan: the recurrence alone, forward and
backward, on random numbers.
Each line of its standard input asks for so many more steps (protocol.py); answers have wall and processor time of each step, their
tokens, losses, parameters, threads and peak memory.
"""
import argparse
import itertools
import json
import resource

import torch
from torch.nn import functional as F

import protocol
import sample_order
import torch_models
import torch_ten_chunked

# Mamba2 takes a step's samples a piece at a time, and computes its layers again where one sample is more: all at once it
# would need over 16 GB.
PIECE_TOKENS = 8192


def ten(options):
    return torch_ten_chunked.load(options.init)


def llama(options):
    return torch_models.load(options.init, positions=options.seq)


def mamba2(options):
    from transformers import Mamba2Config, Mamba2ForCausalLM
    torch.manual_seed(1)
    with open(options.shape, encoding="utf-8") as file:
        model = Mamba2ForCausalLM(Mamba2Config(**json.load(file), use_cache=False)).train()
    if options.seq > PIECE_TOKENS:
        model.gradient_checkpointing_enable()

    class Logits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, ids_bt):
            return self.model(input_ids=ids_bt, use_cache=False).logits

    return Logits()


def optimizer_of(model):
    """Matrices decay; the numbers of a recurrence do not, and have a tenth of the learning rate."""
    groups = {True: [], False: [], None: []}
    for name, parameter in model.named_parameters():
        dynamics = name.endswith(("log_decay", "frequency"))
        groups[None if dynamics else parameter.dim() >= 2].append(parameter)
    return torch.optim.AdamW([{"params": groups[True], "weight_decay": 0.01}, {"params": groups[False], "weight_decay": 0.0},
                              {"params": groups[None], "weight_decay": 0.0, "lr": 1e-5}],
                             lr=1e-4, betas=(0.9, 0.95), eps=1e-8, fused=True)


def samples_of(options):
    stream = sample_order.training_samples(sample_order.read_chunks(options.chunks), options.seq, options.seed)
    while True:
        spans = list(itertools.islice(stream, options.batch))
        if any(len(sample) != 1 for sample in spans):
            raise ValueError("a sample holds more than one document")
        yield tuple(torch.tensor([sample[0][part] + [padding] * (options.seq - len(sample[0][part])) for sample in spans])
                    for part, padding in ((0, 0), (1, sample_order.IGNORE)))


def training_step(options):
    model = {"ten": ten, "llama": llama, "mamba2": mamba2}[options.what](options)

    def loss_sum(ids, labels):
        return F.cross_entropy(model(ids).flatten(0, 1), labels.flatten(), ignore_index=sample_order.IGNORE, reduction="sum")

    run = torch.compile(loss_sum, dynamic=False, mode=options.compile) if options.compile else loss_sum
    optimizer, samples = optimizer_of(model), samples_of(options)
    piece = max(1, PIECE_TOKENS // options.seq) if options.what == "mamba2" else options.batch

    def step():
        ids, labels = next(samples)
        count, loss = (labels != sample_order.IGNORE).sum(), 0.0
        for of_ids, of_labels in zip(ids.split(piece), labels.split(piece)):
            part = run(of_ids, of_labels) / count
            part.backward()
            loss += part.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    return step, sum(parameter.numel() for parameter in model.parameters())


def scan_step(options):
    torch.manual_seed(1)
    log_modulus = (-torch.exp(torch.randn(options.channels) - 3)).requires_grad_()
    angle = torch.randn(options.channels).requires_grad_()
    b = torch.randn(options.batch, options.seq, 2 * options.channels, requires_grad=True)
    gradient = torch.randn_like(b)
    scan = torch_ten_chunked.chunked_scan
    run = torch.compile(scan, dynamic=False, mode=options.compile) if options.compile else scan

    def step():
        for leaf in (log_modulus, angle, b):
            leaf.grad = None
        run(log_modulus, angle, b).backward(gradient)
        return 0.0

    return step, 2 * options.channels


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--what", choices=["ten", "llama", "mamba2", "scan"], required=True)
    for name in ("--init", "--shape", "--chunks"):
        parser.add_argument(name)
    for name, default in (("--seed", 1), ("--channels", 64), ("--threads", 1)):
        parser.add_argument(name, type=int, default=default)
    for name in ("--seq", "--batch"):
        parser.add_argument(name, type=int, required=True)
    parser.add_argument("--compile")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    step, parameters = scan_step(options) if options.what == "scan" else training_step(options)

    def work(steps):
        return protocol.whole_of_steps({
            **protocol.times_of_steps(step, steps), "tokens": options.seq * options.batch, "parameters": parameters,
            "threads": torch.get_num_threads(),
            "max_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024})

    protocol.serve(work)


if __name__ == "__main__":
    main()
