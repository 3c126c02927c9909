#!/usr/bin/env python3
"""Trains small models of the family ten with train and with PyTorch, and compares the losses of every step, in fp32.

usage: ten_losses.py [--tools FOLDER] [--steps 50] [--learning-rate R] [--jobs N] [--only SUBSTRING] [OUT.md]

Each shape of ten_shapes.py, on samples that pack several documents and on samples that are pieces of one. torch_ten.py is the
other side: a loop over the tokens of each document, alone, autograd, torch.optim.AdamW, and a norm summed in float64. Both have
the same start, tokens, order and schedule; decays and frequencies have their own factor of the learning rate and no weight decay.
Exit status 1 when a loss differs by more than 5e-4 of it. PyTorch in float64 says which of the two is nearer to the truth: where
training amplifies the rounding of fp32, as it can at three times this learning rate, PyTorch leaves its own losses, too. PYTHON
needs torch, transformers, safetensors.
"""
import itertools
import pathlib
import sys
import tempfile

import torch

import parity_cases
import sample_order
import ten_shapes
import torch_ten
import train_runs
from pytorch_loop import learning_rate
from train_runs import run

BOUND = 5e-4
BATCH, MICRO_BATCHES, SEQUENCE = 4, 2, 128
WARMUP = 10


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


def reference(start, chunks, plan, steps, dtype=torch.float32):
    """Losses and norms of gradients of each step, and the most documents of a sample."""
    model = torch_ten.load(start).to(dtype)
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


def trained(tools, scratch, shape, data, args):
    """(the start, the records of a run's steps, its plan)"""
    folder = scratch / f"{shape} {data}".replace(" ", "-")
    folder.mkdir()
    arguments = [tools / "train", "-q", "--data", scratch / data, "--seq", SEQUENCE, "--batch", BATCH, "--accum", MICRO_BATCHES,
                 "--mixed-precision", "no", "--threads", 1, "--save-every", 0, "--log-every", 1, "--schedule", "cosine"]
    config = ten_shapes.write_config(folder / "config.json", shape)
    run(*arguments, "--model", config, "--steps", 1, "--warmup", 0, "--lr", 0, "--weight-decay", 0, "--out", folder / "start")
    run(*arguments, "--init", folder / "start", "--steps", args.steps, "--warmup", min(WARMUP, args.steps),
        "--lr", args.learning_rate, "--weight-decay", 0.1, "--clip", 1.0, "--out", folder / "run")
    plan = train_runs.records_of(folder / "run", "run_begin")[0]["plan"]
    return folder / "start/latest", train_runs.records_of(folder / "run", "step"), plan


def most_apart(values, theirs):
    return max(abs(value / other - 1) for value, other in zip(values, theirs))


def compare(tools, scratch, shape, data, args):
    torch.set_num_threads(1)
    steps, chunks = args.steps, sample_order.read_chunks(scratch / f"{data}.jsonl")
    start, records, plan = trained(tools, scratch, shape, data, args)
    losses, norms, documents = reference(start, chunks, plan, steps)
    exact, _, _ = reference(start, chunks, plan, steps, torch.float64)
    assert len(records) == steps, f"{len(records)} records of {steps} steps"
    ours = [record["loss_nats"] for record in records]
    loss, norm = most_apart(ours, losses), most_apart([record["grad_norm"] for record in records], norms)
    return {"loss": loss, "ours_float64": most_apart(ours, exact), "pytorch_float64": most_apart(losses, exact), "norm": norm,
            "first": losses[0], "last": losses[-1], "documents": documents, "holds": loss <= BOUND}


def report(rows, args):
    introduction = (
        f"scripts/compare/ten_losses.py: {BATCH} samples of {SEQUENCE} tokens in each of {MICRO_BATCHES} micro-batches, fp32, "
        f"torch {torch.__version__}. Largest relative differences, over {args.steps} steps at a learning rate of "
        f"{args.learning_rate:g}, of the loss (bound {BOUND:g}) and of the norm of the gradient; documents: the most of a sample. "
        "train's and PyTorch's losses are also compared with those of PyTorch in float64.")
    return parity_cases.report("TEN beside PyTorch", introduction, rows, {
        "documents": lambda row: str(row["documents"]), "loss": lambda row: f"{row['loss']:.1e}",
        "norm": lambda row: f"{row['norm']:.1e}", "train from float64": lambda row: f"{row['ours_float64']:.1e}",
        "PyTorch from float64": lambda row: f"{row['pytorch_float64']:.1e}",
        "loss at first, at last": lambda row: f"{row['first']:.4f}, {row['last']:.4f}"})


def main():
    parser = parity_cases.arguments(__doc__)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    args = parser.parse_args()
    tools = args.tools.resolve()
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        ten_shapes.make_shards(scratch, tools)
        for data in ("documents", "text"):
            (scratch / f"{data}.jsonl").write_text(run(tools / "pack", "--cat", "--json", scratch / data))
        cases = {f"{shape}, {data}": (tools, scratch, shape, data, args)
                 for shape in ten_shapes.SHAPES for data in ("documents", "text") if args.only in f"{shape}, {data}"}
        rows = parity_cases.compare_all(compare, cases, args.jobs)
    train_runs.write_report(report(rows, args), args.out)
    return parity_cases.exit_status(rows)


if __name__ == "__main__":
    sys.exit(main())
