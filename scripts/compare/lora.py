#!/usr/bin/env python3
"""The two sides of lora.sh.

usage: lora.py side-by-side --scratch DIR [--rank R] [--adapter-flags=FLAGS] [--steps N] [--rounds N] [--cpus LIST] [--threads LIST]
                            [--runs LIST] [--modes LIST] OUT
       lora.py base DIR
       lora.py peft --base DIR --adapter DIR --plan PLAN.json --train CHUNKS.jsonl [--nf4] [--compile MODE] [--threads N]

side-by-side trains with both, by the protocol of protocol.py; base makes the model; peft trains one adapter with peft, as many steps as
each line of its standard input asks for, and reports their losses and times. `train` starts anew in each round; peft's side stays
alive. With --nf4 the base's linear layers hold what bitsandbytes makes of them by nf4 with
double quantisation, read back: the maths of QLoRA without its kernels, which a CPU lacks.
"""
import argparse
import itertools
import json
import os
import pathlib
import resource
import subprocess
import sys

import protocol
import sample_order
from protocol import Comparison, Contestant, Worker
from train_runs import figures_of, records_of, version_of

UNTIMED_STEPS = 2
# Relative, of the losses of the steps that are not timed.
LOSS_BOUND = {"fp32": 1e-3, "bf16": 1e-2}
RUNS = ("fp32", "bf16", "fp32-nf4", "bf16-nf4")


def peft_side(options):
    import torch
    from peft import PeftModel
    from pytorch_loop import learning_rate
    from torch.nn import functional as F
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(options.threads)
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
    done = itertools.count()

    def loss_of(ids, labels):
        logits = model(input_ids=ids).logits
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=sample_order.IGNORE)

    run = torch.compile(loss_of, mode=options.compile) if options.compile else loss_of

    def step():
        samples = list(itertools.islice(stream, plan["batch"]))
        if any(len(sample) != 1 for sample in samples):
            sys.exit("a sample holds more than one span")
        ids, labels = (torch.tensor([sample[0][part] + [padding] * (plan["sequence_tokens"] - len(sample[0][0]))
                                     for sample in samples])
                       for part, padding in ((0, 0), (1, sample_order.IGNORE)))
        with torch.autocast("cpu", dtype=dtype, enabled=dtype != torch.float32):
            loss = run(ids, labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, plan["clip"])
        number = next(done)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(plan, number)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.item()

    def steps(steps):
        told = {**protocol.times_of_steps(step, steps), "tokens": plan["batch"] * plan["sequence_tokens"],
                "parameters": sum(parameter.numel() for parameter in trained),
                "max_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}
        return protocol.whole_of_steps(told)

    protocol.serve(steps)


def our_side(scratch, precision, quant, steps, name, threads):
    """(what a run reports, its plan)"""
    run = scratch / name
    subprocess.run(["rm", "-rf", run], check=True)
    summary = scratch / (name + ".json")
    protocol.run_command(["train", "-q", "--adapter", scratch / "start/latest", "--init", scratch / "base", "--data",
                          scratch / "shards", "--steps", steps, "--seq", 512, "--batch", 4, "--lr", "0.002", "--quant", quant,
                          "--mixed-precision", precision, "--threads", threads, "--save-every", 0, "--log-every", 1, "--out", run,
                          "--summary", summary])
    told = figures_of(records_of(run)) | {"max_memory_bytes": json.loads(summary.read_text())["max_memory_bytes"]}
    return told, json.loads((run / "latest/metadata.json").read_text())["provenance"]["plan"]


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


def compare(options, record, scratch, name, threads):
    precision, nf4 = name.removesuffix("-nf4"), name.endswith("-nf4")
    flag, quant = "no" if precision == "fp32" else precision, "nf4" if nf4 else "none"
    # The longest run that peft's steps are of: schedules are alike from the first step on.
    total = UNTIMED_STEPS + options.steps
    plan = scratch / (name + "-plan.json")
    plan.write_text(json.dumps(our_side(scratch, flag, quant, total, name, threads)[1]))

    def train():
        return protocol.timed_steps(our_side(scratch, flag, quant, total, name, threads)[0], UNTIMED_STEPS)

    contestants, workers, losses = [Contestant("train", train)], [], {}
    for mode_name, mode in protocol.torch_modes(options).items():
        worker = Worker([sys.executable, __file__, "peft", "--base", scratch / "base", "--adapter", scratch / "start/latest",
                         "--plan", plan, "--train", scratch / "chunks.jsonl", "--threads", threads, *(["--nf4"] if nf4 else []),
                         *(["--compile", mode] if mode else [])], longest_s=options.longest_answer)
        workers.append(worker)

        def warm(worker=worker, mode_name=mode_name):
            losses[mode_name] = worker.ask(steps=UNTIMED_STEPS)["losses_nats"]

        contestants.append(Contestant(f"peft, {mode_name}", lambda worker=worker: worker.sample(steps=options.steps), peer="peft",
                                      prepare=warm))
    try:
        results = record.run(Comparison(f"{name}, threads {threads}", "tokens", contestants, threads=threads,
                                        settings={"rank": options.rank, "steps": options.steps}, **protocol.how(options)))
    finally:
        for worker in workers:
            worker.close()
    first = results.state["tries"][0]["samples"]
    ours = first["train"][""]["losses_nats"]
    if losses:  # where nothing was measured, those of before are there
        record.extra.setdefault("first losses", {})[results.state["name"]] = {"train": ours[:UNTIMED_STEPS], **losses}
    if losses.get("eager") and "peft, eager" in first:
        theirs = losses["eager"] + first["peft, eager"][""]["losses_nats"]
        record.extra.setdefault("losses", {})[results.state["name"]] = {
            "first": ours[0], "last": ours[-1], "theirs": theirs[-1],
            "largest difference": max(abs(a - b) for a, b in zip(ours, theirs, strict=True))}


def compare_precisions(options, record, scratch, threads):
    """Ours in bf16 beside ours in fp32."""
    total = UNTIMED_STEPS + options.steps

    def contestant(precision, flag):
        return Contestant(f"train, {precision}", lambda: protocol.timed_steps(
            our_side(scratch, flag, "none", total, precision, threads)[0], UNTIMED_STEPS))

    record.run(Comparison(f"bf16 beside fp32, threads {threads}", "tokens", [contestant("bf16", "bf16"), contestant("fp32", "no")],
                          threads=threads, settings={"rank": options.rank, "steps": options.steps}, **protocol.how(options)))


def extra_text(record):
    """Markdown of losses and memory."""
    lines = ["", "## Losses of the first round, nats", "", "| run | first | train's last | peft's last | largest difference |",
             "|---|---:|---:|---:|---:|"]
    for name, told in record.extra.get("losses", {}).items():
        lines.append(f"| {name} | {told['first']:.5f} | {told['last']:.5f} | {told['theirs']:.5f} | "
                     f"{told['largest difference']:.2g} |")
    lines += ["", "## Peak memory, MiB", "", "| run | contestant | MiB | train takes of it |", "|---|---|---:|---:|"]
    for state in record.states:
        results = protocol.Results(state)
        peaks = {name: max(sample["max_memory_bytes"] for sample in results.samples(name, "").values()) / 2**20
                 for name in results.contestants("")}
        lines += [f"| {state['name']} | {name} | {peak:.0f} | {peaks[state['ours']] / peak:.0%} |"
                  for name, peak in peaks.items() if state["ours"] in peaks]
    lines += ["", *[f"**Not the same work:** {line}." for line in differences(record)]]
    return "\n".join(lines) + "\n"


def differences(record):
    """What should be equal and is not: losses of the steps that are not timed. NF4 with bf16 is as bf16."""
    return [line for name, told in record.extra.get("first losses", {}).items() for line in protocol.loss_differences(
        name, told["train"], {who: losses for who, losses in told.items() if who != "train"}, LOSS_BOUND[name.split(",")[0].split("-")[0]])]


def side_by_side(options):
    scratch = pathlib.Path(options.scratch)
    for name in options.runs.split(","):
        if name not in RUNS:
            sys.exit(f"--runs: unknown run {name}, one of {', '.join(RUNS)}")
    make_start(scratch, options.rank, options.adapter_flags)
    versions = ", ".join(map(version_of, ("torch", "transformers", "peft", "bitsandbytes")))
    record = protocol.Record(options.out, "Adapters beside peft", "scripts/compare/lora.sh", notes=(
        f"{versions}. Rank {options.rank} beside all linear layers; a step is 4 samples of 512 tokens, a round {options.steps} steps. Both "
        f"sides have the same base, first adapter, tokens, order, optimizer and schedule; the first {UNTIMED_STEPS} steps are not timed. "
        "In bf16 peft computes under autocast. Its nf4 rows train on fp32 weights that bitsandbytes quantised and read back, so their "
        f"memory and time are not those of QLoRA. {os.environ.get('LOAD', '')}"))
    record.after = extra_text
    for threads in map(int, options.threads.split(",")):
        for name in options.runs.split(","):
            compare(options, record, scratch, name, threads)
            record.write()
    if set(options.runs.split(",")) >= {"fp32", "bf16"}:
        for threads in map(int, options.threads.split(",")):
            compare_precisions(options, record, scratch, threads)
    return protocol.exit_status(differences(record))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    both = commands.add_parser("side-by-side")
    both.add_argument("--scratch", required=True)
    both.add_argument("--rank", type=int, default=16)
    both.add_argument("--adapter-flags", default="")
    both.add_argument("--steps", type=int, default=5)
    both.add_argument("--threads", default="1")
    both.add_argument("--runs", default=",".join(RUNS))
    protocol.add_options(both)
    both.add_argument("out")
    both.set_defaults(run=side_by_side)
    base = commands.add_parser("base")
    base.add_argument("out")
    base.set_defaults(run=make_base)
    peft = commands.add_parser("peft")
    for name in ("--base", "--adapter", "--plan", "--train"):
        peft.add_argument(name, required=True)
    peft.add_argument("--nf4", action="store_true")
    peft.add_argument("--compile")
    peft.add_argument("--threads", type=int, default=1)
    peft.set_defaults(run=peft_side)
    options = parser.parse_args()
    return options.run(options)


if __name__ == "__main__":
    sys.exit(main())
