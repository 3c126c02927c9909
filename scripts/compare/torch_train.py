#!/usr/bin/env python3
"""Trains a model of torch_models.py with a plain PyTorch loop, eager or compiled, on what `train` trained on.

usage: torch_train.py --init CHECKPOINT --plan PLAN.json --train CHUNKS.jsonl --steps N [--compile]
                      [--double | --double-norm] [--threads N] [--accum N] [--bucket-mb N]

Same start, tokens, order, schedule and optimiser as the run that the plan comes from. Every sample must be one span of
one document, so that both sides compute the same attention. Prints one JSON object: the loss and time of each step.
--double computes everything in float64: the yardstick for what two runs in fp32 may differ by. --double-norm
sums only the gradients' norm so: on a CPU, torch.nn.utils.clip_grad_norm_ adds the squares of a tensor in fp32, and for
the millions of elements of an embedding the sum comes out too small (up to 0.15 % of the norm here).

With torchrun's variables (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT) it is one rank of DistributedDataParallel with
Gloo: a step's samples are divided as train divides them (sample_order.share). --accum takes the place of the plan's,
--bucket-mb of PyTorch's 25. Every rank prints its object.
"""
import time

started_unix_s = time.time()

import argparse  # noqa: E402
import contextlib  # noqa: E402
import itertools  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import resource  # noqa: E402
import sys  # noqa: E402

import torch  # noqa: E402
from torch.nn import functional as F  # noqa: E402

imported_unix_s = time.time()

import sample_order  # noqa: E402
import torch_models  # noqa: E402
from pytorch_loop import adamw, learning_rate  # noqa: E402


def clip_by_norm_in_double(model, clip):
    gradients = [parameter.grad for parameter in model.parameters()]
    norm = sum(gradient.double().square().sum() for gradient in gradients).sqrt().item()
    torch._foreach_mul_(gradients, min(1.0, clip / (norm + 1e-6)))


def join_ranks():
    """(rank, ranks) of the group that the environment names."""
    rank, ranks = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    if ranks > 1:
        torch.distributed.init_process_group("gloo")
    return rank, ranks


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--init", "--plan", "--train"):
        parser.add_argument(name, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--accum", type=int)
    parser.add_argument("--bucket-mb", type=float)
    parser.add_argument("--double", action="store_true")
    parser.add_argument("--double-norm", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    with open(options.plan, encoding="utf-8") as file:
        plan = json.load(file)
    accum = options.accum or plan["accum"]
    rank, ranks = join_ranks()
    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[plan["precision"]]
    stream = sample_order.training_samples(sample_order.read_chunks(options.train), plan["sequence_tokens"],
                                           plan["seed"], plan["window_chunks"])
    model = torch_models.load(options.init)
    if options.double:
        model = model.double()
    run = torch.compile(model) if options.compile else model
    if ranks > 1:
        run = torch.nn.parallel.DistributedDataParallel(run, bucket_cap_mb=options.bucket_mb,
                                                        gradient_as_bucket_view=True, broadcast_buffers=False)
    optimizer = adamw(model, plan, fused=True)
    losses, times, first_unix_s = [], [], None
    for step in range(options.steps):
        begin = time.monotonic()
        step_loss = 0.0
        step_samples = list(itertools.islice(stream, ranks * accum * plan["batch"]))
        own = [step_samples[number] for number in sample_order.share(rank, ranks, len(step_samples))]
        for micro_batch in range(accum):
            samples = own[micro_batch * plan["batch"]:(micro_batch + 1) * plan["batch"]]
            if any(len(sample) != 1 for sample in samples):
                sys.exit("a sample holds more than one span")
            # A shorter sample, at the end of the data, is padded on the right, where no label and no token sees it.
            ids, labels = (torch.tensor([sample[0][part] + [padding] * (plan["sequence_tokens"] - len(sample[0][0]))
                                         for sample in samples])
                           for part, padding in ((0, 0), (1, sample_order.IGNORE)))
            first_unix_s = first_unix_s or time.time()
            exchanges = ranks == 1 or micro_batch + 1 == accum
            with contextlib.nullcontext() if exchanges else run.no_sync():
                with torch.autocast("cpu", dtype=dtype, enabled=dtype != torch.float32):
                    logits = run(ids)
                    loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=sample_order.IGNORE)
                (loss / accum).backward()
            step_loss += loss.item() / accum
        if options.double_norm:
            clip_by_norm_in_double(model, plan["clip"])
        else:
            torch.nn.utils.clip_grad_norm_(model.parameters(), plan["clip"])
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(plan, step)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(step_loss)
        times.append(time.monotonic() - begin)
    print(json.dumps({
        "losses_nats": losses, "step_times_s": times, "import_s": imported_unix_s - started_unix_s,
        "imported_unix_s": imported_unix_s, "first_micro_batch_unix_s": first_unix_s,
        "max_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


if __name__ == "__main__":
    main()
