#!/usr/bin/env python3
"""Trains a model of torch_models.py with a plain PyTorch loop, eager or compiled, on what `train` trained on.

usage: torch_train.py --init CHECKPOINT --plan PLAN.json --train CHUNKS.jsonl {--steps N | --serve} [--compile [MODE]]
                      [--double | --double-norm] [--threads N] [--accum N] [--bucket-mb N]

Same start, tokens, order, schedule and optimiser as the run that the plan comes from. Every sample must be one span of
one document, so that both sides compute the same attention. Prints one JSON object: the loss, and wall and CPU time, of each
step. With --serve it goes on with as many steps as each line of its standard input asks for ({"steps": 5}; protocol.py).
--compile takes a mode of torch.compile; what is compiled is the model with its loss.
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

import protocol  # noqa: E402
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


class WithLoss(torch.nn.Module):
    """A model and its cross-entropy, so that a compiler sees both."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids, labels):
        return F.cross_entropy(self.model(ids).flatten(0, 1), labels.flatten(), ignore_index=sample_order.IGNORE)


class Loop:
    """A model in training."""

    def __init__(self, options):
        self.options, self.first_unix_s = options, None
        with open(options.plan, encoding="utf-8") as file:
            self.plan = plan = json.load(file)
        self.accum = options.accum or plan["accum"]
        self.rank, self.ranks = join_ranks()
        self.dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[plan["precision"]]
        self.stream = sample_order.training_samples(sample_order.read_chunks(options.train), plan["sequence_tokens"],
                                                    plan["seed"], plan["window_chunks"])
        self.model = torch_models.load(options.init)
        if options.double:
            self.model = self.model.double()
        with_loss = WithLoss(self.model)
        self.run = torch.compile(with_loss, mode=options.compile) if options.compile else with_loss
        if self.ranks > 1:
            self.run = torch.nn.parallel.DistributedDataParallel(self.run, bucket_cap_mb=options.bucket_mb,
                                                                 gradient_as_bucket_view=True, broadcast_buffers=False)
        self.optimizer, self.done = adamw(self.model, plan, fused=True), 0

    def micro_batches(self):
        """(ids, labels) of each."""
        plan = self.plan
        samples = list(itertools.islice(self.stream, self.ranks * self.accum * plan["batch"]))
        own = [samples[number] for number in sample_order.share(self.rank, self.ranks, len(samples))]
        for micro_batch in range(self.accum):
            part_of = own[micro_batch * plan["batch"]:(micro_batch + 1) * plan["batch"]]
            if any(len(sample) != 1 for sample in part_of):
                sys.exit("a sample holds more than one span")
            # A shorter sample, at the end of the data, is padded on the right, where no label and no token sees it.
            yield tuple(torch.tensor([sample[0][part] + [padding] * (plan["sequence_tokens"] - len(sample[0][0]))
                                      for sample in part_of]) for part, padding in ((0, 0), (1, sample_order.IGNORE)))

    def step(self):
        """One optimizer step; returns its loss."""
        step_loss = 0.0
        for micro_batch, (ids, labels) in enumerate(self.micro_batches()):
            self.first_unix_s = self.first_unix_s or time.time()
            exchanges = self.ranks == 1 or micro_batch + 1 == self.accum
            with contextlib.nullcontext() if exchanges else self.run.no_sync():
                with torch.autocast("cpu", dtype=self.dtype, enabled=self.dtype != torch.float32):
                    loss = self.run(ids, labels)
                (loss / self.accum).backward()
            step_loss += loss.item() / self.accum
        if self.options.double_norm:
            clip_by_norm_in_double(self.model, self.plan["clip"])
        else:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.plan["clip"])
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.plan, self.done)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.done += 1
        return step_loss

    def steps(self, count):
        """What `count` more steps report."""
        told = protocol.times_of_steps(self.step, count)
        return {**told, "tokens": self.plan["batch"] * self.accum * self.plan["sequence_tokens"],
                "import_s": imported_unix_s - started_unix_s, "imported_unix_s": imported_unix_s,
                "first_micro_batch_unix_s": self.first_unix_s,
                "max_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--init", "--plan", "--train"):
        parser.add_argument(name, required=True)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--compile", nargs="?", const="default")
    parser.add_argument("--accum", type=int)
    parser.add_argument("--bucket-mb", type=float)
    parser.add_argument("--double", action="store_true")
    parser.add_argument("--double-norm", action="store_true")
    options = parser.parse_args()
    if (options.steps is None) != options.serve:
        parser.error("one of --steps and --serve")
    torch.set_num_threads(options.threads)
    loop = Loop(options)
    if options.serve:
        protocol.serve(lambda steps: protocol.whole_of_steps(loop.steps(steps)))
    else:
        print(json.dumps(loop.steps(options.steps)))


if __name__ == "__main__":
    main()
