#!/usr/bin/env python3
"""The two sides of lora.sh.

usage: lora.py side-by-side --scratch DIR [--rank R] [--steps N] [--precisions LIST] [OUT.md]
       lora.py peft --base DIR --adapter DIR --plan PLAN.json --train CHUNKS.jsonl --steps N [--nf4]

side-by-side makes a base, trains with both and prints the table; peft trains one adapter with peft and prints a JSON
object of its losses and times. With --nf4 the base's linear layers hold what bitsandbytes makes of them by nf4 with
double quantisation, read back: the maths of QLoRA without its kernels, which a CPU lacks.
"""
import argparse
import datetime
import importlib.metadata
import itertools
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time

import sample_order
from pytorch_loop import learning_rate

UNTIMED_STEPS = 2


def peft_side(options):
    import torch
    from peft import PeftModel
    from torch.nn import functional as F
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(os.cpu_count())
    plan = json.loads(pathlib.Path(options.plan).read_text())
    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[plan["precision"]]
    model = AutoModelForCausalLM.from_pretrained(options.base, dtype=torch.float32)
    if options.nf4:
        from bitsandbytes import functional as bnb
        with torch.no_grad():
            for name, module in model.named_modules():
                if isinstance(module, torch.nn.Linear) and name != "lm_head":
                    packed, state = bnb.quantize_4bit(module.weight, compress_statistics=True, quant_type="nf4")
                    module.weight.copy_(bnb.dequantize_4bit(packed, state))
    model = PeftModel.from_pretrained(model, options.adapter, is_trainable=True)
    model.config.use_cache = False
    model.train()
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, betas=(plan["beta1"], plan["beta2"]), eps=plan["epsilon"],
                                  weight_decay=plan["weight_decay"], fused=True)
    stream = sample_order.training_samples(sample_order.read_chunks(options.train), plan["sequence_tokens"],
                                           plan["seed"], plan["window_chunks"])
    losses, times = [], []
    for step in range(options.steps):
        begin = time.monotonic()
        samples = list(itertools.islice(stream, plan["batch"]))
        if any(len(sample) != 1 for sample in samples):
            sys.exit("a sample holds more than one span")
        ids, labels = (torch.tensor([sample[0][part] + [padding] * (plan["sequence_tokens"] - len(sample[0][0]))
                                     for sample in samples])
                       for part, padding in ((0, 0), (1, sample_order.IGNORE)))
        with torch.autocast("cpu", dtype=dtype, enabled=dtype != torch.float32):
            logits = model(input_ids=ids).logits
            loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=sample_order.IGNORE)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, plan["clip"])
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(plan, step)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        times.append(time.monotonic() - begin)
    print(json.dumps({"losses_nats": losses, "step_times_s": times,
                      "trained": sum(parameter.numel() for parameter in trained),
                      "max_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


def our_side(scratch, precision, quant, steps, name):
    run = scratch / name
    summary = scratch / (name + ".json")
    subprocess.run(["train", "-q", "--adapter", scratch / "start/latest", "--init", scratch / "base", "--data",
                    scratch / "shards", "--steps", str(steps), "--seq", "512", "--batch", "4", "--lr", "0.002", "--quant",
                    quant, "--mixed-precision", precision, "--save-every", "0", "--out", run, "--summary", summary],
                   check=True, stdout=subprocess.DEVNULL)
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    step_records = [record for record in records if record["type"] == "step"]
    metadata = json.loads((run / "latest/metadata.json").read_text())
    return {"losses_nats": [record["loss_nats"] for record in step_records],
            "step_times_s": [record["step_time_s"] for record in step_records],
            "max_memory_bytes": json.loads(summary.read_text())["max_memory_bytes"],
            "plan": metadata["provenance"]["plan"]}


def make_base(scratch, rank):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    torch.manual_seed(1)
    config = LlamaConfig(vocab_size=32000, hidden_size=384, intermediate_size=1024, num_hidden_layers=6,
                         num_attention_heads=6, num_key_value_heads=6, max_position_embeddings=512,
                         tie_word_embeddings=False)
    LlamaForCausalLM(config).save_pretrained(scratch / "base")
    # A step that is too small to change anything: the first adapter, in a file for both.
    subprocess.run(["train", "-q", "--init", scratch / "base", "--data", scratch / "shards", "--lora", str(rank), "--steps",
                    "1", "--lr", "1e-30", "--weight-decay", "0", "--seq", "512", "--batch", "1", "--out",
                    scratch / "start"], check=True, stdout=subprocess.DEVNULL)


def side_by_side(options):
    scratch = pathlib.Path(options.scratch)
    make_base(scratch, options.rank)
    rows = []
    for precision, nf4 in itertools.product(options.precisions.split(","), (False, True)):
        name = precision + ("-nf4" if nf4 else "")
        ours = our_side(scratch, "no" if precision == "fp32" else precision, "nf4" if nf4 else "none", options.steps, name)
        plan = scratch / (name + "-plan.json")
        plan.write_text(json.dumps(ours["plan"]))
        peft = json.loads(subprocess.run(
            [sys.executable, __file__, "peft", "--base", scratch / "base", "--adapter", scratch / "start/latest", "--plan",
             plan, "--train", scratch / "chunks.jsonl", "--steps", str(options.steps)] + (["--nf4"] if nf4 else []),
            check=True, stdout=subprocess.PIPE).stdout)
        difference = max(abs(a - b) for a, b in zip(ours["losses_nats"], peft["losses_nats"], strict=True))
        medians = [statistics.median(side["step_times_s"][UNTIMED_STEPS:]) for side in (ours, peft)]
        rows.append(f"| {name} | {ours['losses_nats'][0]:.5f} | {ours['losses_nats'][-1]:.5f} | "
                    f"{peft['losses_nats'][-1]:.5f} | {difference:.2g} | {medians[0]:.3f} | {medians[1]:.3f} | "
                    f"{medians[1] / medians[0]:.2f} | {ours['max_memory_bytes'] / 2**20:.0f} | "
                    f"{peft['max_memory_bytes'] / 2**20:.0f} | {os.getloadavg()[0]:.1f} |")
        trained = peft["trained"]
    versions = ", ".join(f"{package} {importlib.metadata.version(package)}"
                         for package in ("torch", "transformers", "peft", "bitsandbytes"))
    report = "\n".join([
        f"# Adapters beside peft, {datetime.date.today()}", "",
        f"`scripts/compare/lora.sh --rank {options.rank} --steps {options.steps}`; {versions}; {os.cpu_count()} threads.",
        f"Rank {options.rank} beside all linear layers: {trained:,} trained parameters. Times are medians of the steps after",
        f"the first {UNTIMED_STEPS}, one run each, in seconds; memory is the peak of the process in MiB; load is the machine's",
        "over the minute before a row ended. Of a step, peft computes in autocast what train computes in bf16; its nf4 rows",
        "train on fp32 weights that bitsandbytes quantised and read back, so their memory and time are not those of QLoRA.", "",
        "| run | first loss | train's last | peft's last | largest difference | train s/step | peft s/step | ratio | "
        "train MiB | peft MiB | load |", "|---|---|---|---|---|---|---|---|---|---|---|", *rows, ""])
    if options.out:
        pathlib.Path(options.out).write_text(report)
    else:
        print(report)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    both = commands.add_parser("side-by-side")
    both.add_argument("--scratch", required=True)
    both.add_argument("--rank", type=int, default=16)
    both.add_argument("--steps", type=int, default=12)
    both.add_argument("--precisions", default="fp32,bf16")
    both.add_argument("out", nargs="?")
    both.set_defaults(run=side_by_side)
    peft = commands.add_parser("peft")
    for name in ("--base", "--adapter", "--plan", "--train"):
        peft.add_argument(name, required=True)
    peft.add_argument("--steps", type=int, required=True)
    peft.add_argument("--nf4", action="store_true")
    peft.set_defaults(run=peft_side)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
