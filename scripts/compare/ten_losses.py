#!/usr/bin/env python3
"""Trains small models of the family ten with train and with PyTorch, and compares the losses of every step, in fp32.

usage: ten_losses.py [--tools FOLDER] [--steps 50] [--jobs N] [--only SUBSTRING] [OUT.md]

Each shape of ten_shapes.py, on samples that pack several documents and on samples that are pieces of one. torch_ten.py is the
other side: a loop over the tokens of each document, alone, autograd, torch.optim.AdamW, and a norm summed in float64. Both have
the same start, tokens, order and schedule; decays and frequencies have their own factor of the learning rate and no weight decay.
Exit status 1 when a loss differs by more than 5e-4 of it. PYTHON needs torch, transformers, safetensors.
"""
import argparse
import concurrent.futures
import datetime
import itertools
import json
import multiprocessing
import os
import pathlib
import sys
import tempfile

import torch

import sample_order
import ten_shapes
import torch_ten
import train_runs
from pytorch_loop import learning_rate
from train_runs import ROOT, run

BOUND = 5e-4
BATCH, MICRO_BATCHES, SEQUENCE = 4, 2, 128
LEARNING_RATE, WARMUP = 3e-3, 10


def groups_of(model, plan):
    """Matrices decay, what is of one dimension does not; the trained numbers of a recurrence are learned more slowly."""
    kinds = {}
    for name, parameter in model.named_parameters():
        rate = model.config["dynamics_rate"] if name.endswith(("log_decay", "frequency")) else 1.0
        kinds.setdefault((rate, plan["weight_decay"] if parameter.dim() >= 2 else 0.0), []).append(parameter)
    return [{"params": parameters, "rate": rate, "weight_decay": decay} for (rate, decay), parameters in kinds.items()]


def clip(parameters, most):
    """The norm of the gradients, summed in float64."""
    norm = sum(parameter.grad.double().square().sum() for parameter in parameters).sqrt().item()
    if most > 0:
        for parameter in parameters:
            parameter.grad *= min(1.0, most / (norm + 1e-6))
    return norm


def reference(start, chunks, plan, steps):
    """Losses and norms of gradients of each step, and the most documents of a sample."""
    model = torch_ten.load(start)
    parameters = list(model.parameters())
    for parameter in parameters:  # of windows that no document fills, too
        parameter.grad = torch.zeros_like(parameter)
    optimizer = torch.optim.AdamW(groups_of(model, plan), betas=(plan["beta1"], plan["beta2"]), eps=plan["epsilon"])
    stream = sample_order.training_samples(chunks, plan["sequence_tokens"], plan["seed"], plan["window_chunks"])
    losses, norms, most_documents = [], [], 0
    for step in range(steps):
        batches = [list(itertools.islice(stream, plan["batch"])) for _ in range(plan["accum"])]
        documents = [list(itertools.chain.from_iterable(batch)) for batch in batches]
        most_documents = max(most_documents, *(len(sample) for batch in batches for sample in batch))
        labels = sum(label != sample_order.IGNORE for batch in documents for _, wanted in batch for label in wanted)
        total = 0.0
        for batch in documents:
            loss = torch_ten.loss_sum(model, batch) / labels
            loss.backward()
            total += loss.item()
        losses.append(total)
        norms.append(clip(parameters, plan["clip"]))
        for group in optimizer.param_groups:
            group["lr"] = group["rate"] * learning_rate(plan, step)
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
    return losses, norms, most_documents


def trained(tools, scratch, shape, data, steps):
    """(the start, the records of a run's steps, its plan)"""
    folder = scratch / f"{shape} {data}".replace(" ", "-")
    folder.mkdir()
    arguments = [tools / "train", "-q", "--data", scratch / data, "--seq", SEQUENCE, "--batch", BATCH, "--accum", MICRO_BATCHES,
                 "--mixed-precision", "no", "--threads", 1, "--save-every", 0, "--log-every", 1, "--schedule", "cosine"]
    config = ten_shapes.write_config(folder / "config.json", shape)
    run(*arguments, "--model", config, "--steps", 1, "--warmup", 0, "--lr", 0, "--weight-decay", 0, "--out", folder / "start")
    run(*arguments, "--init", folder / "start", "--steps", steps, "--warmup", min(WARMUP, steps), "--lr", LEARNING_RATE,
        "--weight-decay", 0.1, "--clip", 1.0, "--out", folder / "run")
    plan = train_runs.records_of(folder / "run", "run_begin")[0]["plan"]
    return folder / "start/latest", train_runs.records_of(folder / "run", "step"), plan


def compare(tools, scratch, shape, data, steps):
    torch.set_num_threads(1)
    row = {"shape": shape, "data": data}
    try:
        start, records, plan = trained(tools, scratch, shape, data, steps)
        losses, norms, documents = reference(start, sample_order.read_chunks(scratch / f"{data}.jsonl"), plan, steps)
        assert len(records) == steps, f"{len(records)} records of {steps} steps"
        loss = max(abs(record["loss_nats"] / theirs - 1) for record, theirs in zip(records, losses))
        norm = max(abs(record["grad_norm"] / theirs - 1) for record, theirs in zip(records, norms))
    except Exception as error:  # noqa: BLE001: whatever it is, it is told, and ends no other case
        return row | {"error": f"{type(error).__name__}: {error}", "holds": False}
    return row | {"loss": loss, "norm": norm, "first": losses[0], "last": losses[-1], "documents": documents,
                  "holds": loss <= BOUND}


def report(rows, steps):
    failed = sum(not row["holds"] for row in rows)
    lines = [f"# TEN beside PyTorch, {datetime.date.today()}", "", f"{len(rows) - failed} of {len(rows)} cases hold.", "",
             f"scripts/compare/ten_losses.py: {BATCH} samples of {SEQUENCE} tokens in each of {MICRO_BATCHES} micro-batches, "
             f"fp32, torch {torch.__version__}. Largest relative differences, over {steps} steps, of the loss (bound {BOUND:g}) and of "
             "the norm of the gradient; documents: the most of a sample.", "",
             "| model | documents | loss | norm | loss at first, at last | |", "|---|---|---|---|---|---|"]
    for row in rows:
        if "error" in row:
            lines.append(f"| {row['shape']}, {row['data']} | | | | {' '.join(row['error'].split())} | FAILS |")
            continue
        lines.append(f"| {row['shape']}, {row['data']} | {row['documents']} | {row['loss']:.1e} | {row['norm']:.1e} | "
                     f"{row['first']:.4f}, {row['last']:.4f} | {'holds' if row['holds'] else 'FAILS'} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", nargs="?", type=pathlib.Path)
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="cases at once, of one thread each")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    tools, rows = args.tools.resolve(), []
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        ten_shapes.make_shards(scratch, tools)
        for data in ("documents", "text"):
            (scratch / f"{data}.jsonl").write_text(run(tools / "pack", "--cat", "--json", scratch / data))
        cases = [(shape, data) for shape in ten_shapes.SHAPES for data in ("documents", "text")
                 if args.only in f"{shape}, {data}"]
        with concurrent.futures.ProcessPoolExecutor(args.jobs, multiprocessing.get_context("spawn")) as pool:
            futures = [pool.submit(compare, tools, scratch, *case, args.steps) for case in cases]
            for future in futures:
                rows.append(future.result())
                print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    train_runs.write_report(report(rows, args.steps), args.out)
    return 0 if rows and all(row["holds"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
