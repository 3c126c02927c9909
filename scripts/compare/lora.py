#!/usr/bin/env python3
"""The two sides of lora.sh.

usage: lora.py side-by-side --scratch DIR [--rank R] [--adapter-flags=FLAGS] [--steps N] [--rounds N] [--runs LIST] [OUT.md]
       lora.py base DIR
       lora.py peft --base DIR --adapter DIR --plan PLAN.json --train CHUNKS.jsonl --steps N [--nf4]

side-by-side trains with both and prints the table, with --adapter-flags adapters of another kind, such as "--dora";
base makes the model; peft trains one adapter with peft and prints a JSON object of its losses and times. With --nf4
the base's linear layers hold what bitsandbytes makes of them by nf4 with double quantisation, read back: the maths of
QLoRA without its kernels, which a CPU lacks.
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

UNTIMED_STEPS = 2
RUNS = ("fp32", "bf16", "fp32-nf4", "bf16-nf4")


def peft_side(options):
    import torch
    from peft import PeftModel
    from pytorch_loop import learning_rate
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
    groups = [{"params": [parameter for parameter in trained if (parameter.dim() > 1) == decays],
               "weight_decay": plan["weight_decay"] if decays else 0.0} for decays in (True, False)]
    optimizer = torch.optim.AdamW([group for group in groups if group["params"]],
                                  betas=(plan["beta1"], plan["beta2"]), eps=plan["epsilon"], fused=True)
    stream = sample_order.training_samples(sample_order.read_chunks(options.train), plan["sequence_tokens"],
                                           plan["seed"], plan["window_chunks"])
    losses, times, cpu_times = [], [], []
    for step in range(options.steps):
        samples = list(itertools.islice(stream, plan["batch"]))
        begin, cpu_begin = time.monotonic(), time.process_time()
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
        cpu_times.append(time.process_time() - cpu_begin)
    print(json.dumps({"losses_nats": losses, "step_times_s": times, "step_cpu_s": cpu_times,
                      "trained": sum(parameter.numel() for parameter in trained),
                      "max_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


def our_side(scratch, precision, quant, steps, name):
    run = scratch / name
    subprocess.run(["rm", "-rf", run], check=True)
    summary = scratch / (name + ".json")
    subprocess.run(["train", "-q", "--adapter", scratch / "start/latest", "--init", scratch / "base", "--data",
                    scratch / "shards", "--steps", str(steps), "--seq", "512", "--batch", "4", "--lr", "0.002", "--quant",
                    quant, "--mixed-precision", precision, "--threads", str(os.cpu_count()), "--save-every", "0", "--out",
                    run, "--summary", summary], check=True, stdout=subprocess.DEVNULL)
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    step_records = [record for record in records if record["type"] == "step"]
    metadata = json.loads((run / "latest/metadata.json").read_text())
    # cpu_cores is of the time since the record before, so a step's processor time follows from the records' times.
    clock = [record["time_unix_s"] for record in step_records]
    cpu = [None] + [record["cpu_cores"] * (now - before)
                    for record, before, now in zip(step_records[1:], clock, clock[1:], strict=False)]
    return {"losses_nats": [record["loss_nats"] for record in step_records],
            "step_times_s": [record["step_time_s"] for record in step_records], "step_cpu_s": cpu,
            "step_tokens": [record["tokens"] for record in step_records] if "tokens" in step_records[0] else None,
            "model_flops_per_s": [record["model_flops_per_s"] for record in step_records],
            "max_memory_bytes": json.loads(summary.read_text())["max_memory_bytes"],
            "plan": metadata["provenance"]["plan"]}


def make_base(options):
    """In a process of its own: the peak memory of a process counts in those that it starts."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    torch.manual_seed(1)
    config = LlamaConfig(vocab_size=32000, hidden_size=384, intermediate_size=1024, num_hidden_layers=6,
                         num_attention_heads=6, num_key_value_heads=6, max_position_embeddings=512,
                         tie_word_embeddings=False)
    LlamaForCausalLM(config).save_pretrained(options.out)


def make_start(scratch, rank, flags):
    subprocess.run([sys.executable, __file__, "base", scratch / "base"], check=True)
    # A step that is too small to change anything: the first adapter, in a file for both.
    subprocess.run(["train", "-q", "--init", scratch / "base", "--data", scratch / "shards", "--lora", str(rank), "--steps",
                    "1", "--lr", "1e-30", "--weight-decay", "0", "--seq", "512", "--batch", "1", "--out",
                    scratch / "start", *flags.split()], check=True, stdout=subprocess.DEVNULL)


def timed(rounds, key):
    """The steps of all rounds that are timed."""
    return [value for one in rounds for value in one[key][UNTIMED_STEPS:]]


def side_by_side(options):
    scratch = pathlib.Path(options.scratch)
    make_start(scratch, options.rank, options.adapter_flags)
    tokens, rows, results = 2048, [], {}
    for name in options.runs.split(","):
        if name not in RUNS:
            sys.exit(f"--runs: unknown run {name}, one of {', '.join(RUNS)}")
        precision, nf4 = name.removesuffix("-nf4"), name.endswith("-nf4")
        ours, peft, loads = [], [], []
        for _ in range(options.rounds):
            loads.append(os.getloadavg()[0])
            ours.append(our_side(scratch, "no" if precision == "fp32" else precision, "nf4" if nf4 else "none",
                                 options.steps, name))
            plan = scratch / (name + "-plan.json")
            plan.write_text(json.dumps(ours[0]["plan"]))
            peft.append(json.loads(subprocess.run(
                [sys.executable, __file__, "peft", "--base", scratch / "base", "--adapter", scratch / "start/latest",
                 "--plan", plan, "--train", scratch / "chunks.jsonl", "--steps", str(options.steps)] +
                (["--nf4"] if nf4 else []), check=True, stdout=subprocess.PIPE).stdout))
        difference = max(abs(a - b)
                         for a, b in zip(ours[0]["losses_nats"], peft[0]["losses_nats"], strict=True))
        wall = [statistics.median(timed(side, "step_times_s")) for side in (ours, peft)]
        best = [min(timed(side, "step_times_s")) for side in (ours, peft)]
        cpu = [statistics.median(timed(side, "step_cpu_s")) for side in (ours, peft)]
        memory = [max(one["max_memory_bytes"] for one in side) / 2**20 for side in (ours, peft)]
        rows.append(f"| {name} | {ours[0]['losses_nats'][0]:.5f} | {ours[0]['losses_nats'][-1]:.5f} | "
                    f"{peft[0]['losses_nats'][-1]:.5f} | {difference:.2g} | {tokens / wall[0]:.0f} | {tokens / wall[1]:.0f} | "
                    f"{wall[1] / wall[0]:.2f} | {best[1] / best[0]:.2f} | {tokens / cpu[0]:.0f} | {tokens / cpu[1]:.0f} | "
                    f"{cpu[1] / cpu[0]:.2f} | {memory[0]:.0f} | {memory[1]:.0f} | {memory[0] / memory[1]:.0%} | "
                    f"{min(loads):.1f} to {max(loads):.1f} |")
        results[name] = {"train": ours, "peft": peft, "load_1min": loads}
        trained = peft[0]["trained"]
    versions = ", ".join(f"{package} {importlib.metadata.version(package)}"
                         for package in ("torch", "transformers", "peft", "bitsandbytes"))
    load = os.environ.get("LOAD", "")
    report = "\n".join([
        f"# Adapters beside peft, {datetime.date.today()}", "",
        f"`scripts/compare/lora.sh --rank {options.rank} " +
        (f"--adapter-flags='{options.adapter_flags}' " if options.adapter_flags else "") +
        f"--steps {options.steps} --rounds {options.rounds} --runs {options.runs}`; {versions}; {os.cpu_count()} threads.",
        f"Rank {options.rank} beside all linear layers: {trained:,} trained parameters; a step is 4 samples of 512 tokens.",
        "Both sides have the same base, first adapter, tokens, order, optimizer and schedule; rounds alternate. Tokens per",
        f"second are of the median of all rounds' steps after the first {UNTIMED_STEPS}, by the wall and by processor seconds",
        "of the process; \"best\" is the ratio of the fastest steps. Memory is the peak of the process in MiB; load is the",
        "machine's over the minute before a round. In bf16 peft computes under autocast. Its nf4 rows train on fp32 weights",
        "that bitsandbytes quantised and read back, so their memory and time are not those of QLoRA.", load, "",
        "| run | first loss | train's last | peft's last | largest difference | train tok/s | peft tok/s | ratio | best | "
        "train tok/CPU s | peft tok/CPU s | ratio | train MiB | peft MiB | share | load |",
        "|---|" + "---|" * 15, *rows, ""])
    if options.out:
        pathlib.Path(options.out).write_text(report)
        pathlib.Path(options.out).with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n")
    else:
        print(report)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    both = commands.add_parser("side-by-side")
    both.add_argument("--scratch", required=True)
    both.add_argument("--rank", type=int, default=16)
    both.add_argument("--adapter-flags", default="")
    both.add_argument("--steps", type=int, default=12)
    both.add_argument("--rounds", type=int, default=2)
    both.add_argument("--runs", default=",".join(RUNS))
    both.add_argument("out", nargs="?")
    both.set_defaults(run=side_by_side)
    base = commands.add_parser("base")
    base.add_argument("out")
    base.set_defaults(run=make_base)
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
