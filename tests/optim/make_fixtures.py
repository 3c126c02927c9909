#!/usr/bin/env python3
"""Makes tests/optim/fixtures/schedules.json and adamw.json: what PyTorch and transformers compute for the schedules, and
for AdamW with two parameter groups.

usage: make_fixtures.py OUTPUT_DIR      (needs torch, transformers)

The rates of transformers and of PyTorch's annealing are those of step + 1: ours take the first step with a rate above
zero. OneCycleLR is taken as it is.
"""
import json
import pathlib
import sys

import torch
import transformers

PEAK = 0.3


def rates(make_scheduler, steps, offset, betas=False):
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.AdamW([parameter], lr=PEAK, betas=(0.9, 0.95))
    scheduler = make_scheduler(optimizer)
    lr, beta1 = [], []
    for _ in range(steps + offset):
        lr.append(optimizer.param_groups[0]["lr"])
        beta1.append(optimizer.param_groups[0]["betas"][0])
        optimizer.step()
        if len(lr) < steps + offset:
            scheduler.step()
    return (lr[offset:], beta1[offset:]) if betas else lr[offset:]


def schedules():
    cases = []

    def add(schedule, steps, warmup, lr, **fields):
        cases.append(dict(schedule=schedule, total_steps=steps, warmup_steps=warmup, lr=lr, **fields))

    for steps, warmup in [(1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (17, 0), (17, 5), (17, 17)]:
        cosine = lambda o: transformers.get_cosine_schedule_with_warmup(o, warmup, steps)
        linear = lambda o: transformers.get_linear_schedule_with_warmup(o, warmup, steps)
        constant = lambda o: transformers.get_constant_schedule_with_warmup(o, warmup)
        add("cosine", steps, warmup, rates(cosine, steps, 1), min_lr_ratio=0.0)
        if warmup < steps:  # transformers' linear is 0 at a step that ends both warm-up and run
            add("linear", steps, warmup, rates(linear, steps, 1), min_lr_ratio=0.0)
        add("constant", steps, warmup, rates(constant, steps, 1), min_lr_ratio=0.0)
        for decay in {d for d in (1, 4, steps - warmup) if 1 <= d <= steps - warmup}:
            wsd = lambda o: transformers.get_wsd_schedule(o, num_warmup_steps=warmup, num_decay_steps=decay,
                                                          num_training_steps=steps, decay_type="1-sqrt")
            add("wsd", steps, warmup, rates(wsd, steps, 1), min_lr_ratio=0.0, decay_steps=decay)
    for steps in (1, 2, 17):
        annealing = lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, T_max=steps, eta_min=0.1 * PEAK)
        add("cosine", steps, 0, rates(annealing, steps, 1), min_lr_ratio=0.1)
        falling = lambda o: torch.optim.lr_scheduler.LinearLR(o, 1.0, 0.1, total_iters=steps)
        add("linear", steps, 0, rates(falling, steps, 1), min_lr_ratio=0.1)
        wsd = lambda o: transformers.get_wsd_schedule(o, num_warmup_steps=0, num_decay_steps=steps,
                                                      num_training_steps=steps, decay_type="1-sqrt", min_lr_ratio=0.1)
        add("wsd", steps, 0, rates(wsd, steps, 1), min_lr_ratio=0.1, decay_steps=steps)
    # OneCycleLR divides by zero where pct_start * total_steps is 1, and with pct_start 1 when it steps past the end.
    for steps, share in [(1, 0.1), (2, 0.1), (7, 0.1), (20, 0.1), (25, 0.1), (2, 1.0), (20, 0.5), (20, 1.0)]:
        one_cycle = lambda o: torch.optim.lr_scheduler.OneCycleLR(
            o, max_lr=PEAK, total_steps=steps, pct_start=share, anneal_strategy="cos", cycle_momentum=True,
            base_momentum=0.85, max_momentum=0.95, div_factor=25.0, final_div_factor=1e4)
        lr, beta1 = rates(one_cycle, steps, 0, betas=True)
        add("one-cycle", steps, share * steps, lr, beta1=beta1)
    return {"peak_lr": PEAK, "cases": cases}


def adamw():
    """Six steps of AdamW over a decayed matrix and an undecayed vector, with a rate and a beta1 of their own each."""
    torch.manual_seed(0)
    matrix = torch.nn.Parameter(torch.randn(3, 5, dtype=torch.float32))
    norm = torch.nn.Parameter(torch.randn(5, dtype=torch.float32))
    optimizer = torch.optim.AdamW([dict(params=[matrix], weight_decay=0.2), dict(params=[norm], weight_decay=0.0)],
                                  lr=0.1, betas=(0.8, 0.99), eps=1e-6)
    result = {"weight_decay": 0.2, "beta2": 0.99, "epsilon": 1e-6, "matrix": matrix.flatten().tolist(),
              "norm": norm.tolist(), "steps": []}
    for step in range(6):
        lr, beta1 = 0.02 * (step + 1), 0.8 + 0.03 * step
        for group in optimizer.param_groups:
            group["lr"], group["betas"] = lr, (beta1, 0.99)
        matrix.grad, norm.grad = torch.randn(3, 5), torch.randn(5)
        optimizer.step()
        result["steps"].append(dict(lr=lr, beta1=beta1, matrix_gradient=matrix.grad.flatten().tolist(),
                                    norm_gradient=norm.grad.tolist(), matrix=matrix.flatten().tolist(),
                                    norm=norm.tolist()))
    return result


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (("schedules", schedules()), ("adamw", adamw())):
        (folder / f"{name}.json").write_text(json.dumps(content) + "\n")
