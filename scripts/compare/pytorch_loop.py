#!/usr/bin/env python3
"""Trains with plain PyTorch what `train` trained: the same start, tokens, order, schedule and optimiser.

usage: pytorch_loop.py --init CHECKPOINT --plan PLAN.json --train CHUNKS.jsonl --val CHUNKS.jsonl [--precision P]

The model is transformers' LlamaForCausalLM under torch.autocast, the optimiser torch.optim.AdamW; nothing of
Trainwright's C++ is used. --init is a folder in Hugging Face's layout, the *.jsonl come from `pack --cat --json`, the
plan is what `train` stored in its checkpoint. Prints one JSON object: validation loss before and after.
"""
import argparse
import itertools
import json
import math
import sys
import time

import torch
from transformers import LlamaForCausalLM

import sample_order


def learning_rate(plan, step):
    """Linear warm-up, then cosine to min_lr_ratio of the peak."""
    if step < plan["warmup_steps"]:
        return plan["lr"] * (step + 1) / plan["warmup_steps"]
    progress = min(1.0, (step + 1 - plan["warmup_steps"]) / max(1, plan["total_steps"] - plan["warmup_steps"]))
    floor = plan["min_lr_ratio"]
    return plan["lr"] * (floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * progress)))


def adamw(model, plan, **options):
    """The plan's optimizer: norms and biases do not decay."""
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    return torch.optim.AdamW([{"params": matrices, "weight_decay": plan["weight_decay"]},
                              {"params": vectors, "weight_decay": 0.0}],
                             betas=(plan["beta1"], plan["beta2"]), eps=plan["epsilon"], **options)


def loss_sum(model, samples, dtype):
    """Summed cross-entropy and number of labels. Each span of a document is a row of its own, so that no attention
    crosses a document and positions start at 0; the padding on the right has no label and is seen by no token."""
    spans = [span for sample in samples for span in sample]
    width = max(len(tokens) for tokens, _ in spans)
    ids = torch.zeros(len(spans), width, dtype=torch.long)
    labels = torch.full((len(spans), width), sample_order.IGNORE)
    for row, (tokens, wanted) in enumerate(spans):
        ids[row, :len(tokens)] = torch.tensor(tokens)
        labels[row, :len(wanted)] = torch.tensor(wanted)
    keep = labels.flatten() != sample_order.IGNORE
    with torch.autocast("cpu", dtype=dtype, enabled=dtype != torch.float32):
        hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state
        logits = model.lm_head(hidden.flatten(0, 1)[keep])
    loss = torch.nn.functional.cross_entropy(logits.float(), labels.flatten()[keep], reduction="sum")
    return loss, int(keep.sum())


@torch.no_grad()
def evaluate(model, samples, dtype, at_once=16):
    total, labels = 0.0, 0
    for begin in range(0, len(samples), at_once):
        loss, count = loss_sum(model, samples[begin:begin + at_once], dtype)
        total, labels = total + loss.item(), labels + count
    return total / labels, labels


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--init", "--plan", "--train", "--val"):
        parser.add_argument(name, required=True)
    parser.add_argument("--precision", choices=["fp32", "bf16"], help="default: the plan's")
    options = parser.parse_args()

    with open(options.plan, encoding="utf-8") as file:
        plan = json.load(file)
    if plan["schedule"] != "cosine":
        sys.exit("this script knows the cosine schedule only")
    precision = options.precision or plan["precision"]
    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[precision]
    sequence = plan["sequence_tokens"]
    train = sample_order.training_samples(sample_order.read_chunks(options.train), sequence, plan["seed"],
                                          plan["window_chunks"])
    validation = sample_order.stored_samples(sample_order.read_chunks(options.val), sequence)

    model = LlamaForCausalLM.from_pretrained(options.init, dtype=torch.float32, attn_implementation="sdpa")
    optimizer = adamw(model, plan)

    before, labels = evaluate(model, validation, dtype)
    start, tokens = time.monotonic(), 0
    steps = plan["total_steps"]
    for step in range(steps):
        batches = [list(itertools.islice(train, plan["batch"])) for _ in range(plan["accum"])]
        step_labels = sum(label != sample_order.IGNORE for batch in batches for sample in batch
                          for _, wanted in sample for label in wanted)
        step_loss = 0.0
        for batch in batches:
            loss, _ = loss_sum(model, batch, dtype)
            (loss / step_labels).backward()
            step_loss += loss.item() / step_labels
            tokens += sum(len(ids) for sample in batch for ids, _ in sample)
        if plan["clip"] > 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), plan["clip"])
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(plan, step)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 20 == 0 or step + 1 == steps:
            print(f"step {step + 1}/{steps} loss {step_loss:.4f} {tokens / (time.monotonic() - start):.0f} tokens/s",
                  file=sys.stderr, flush=True)
    after, _ = evaluate(model, validation, dtype)
    print(json.dumps({"precision": precision, "steps": steps, "tokens": tokens,
                      "validation_labels": labels, "validation_loss_before_nats": before,
                      "validation_loss_nats": after, "torch": torch.__version__}))


if __name__ == "__main__":
    main()
