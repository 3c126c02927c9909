#!/usr/bin/env python3
"""Compares train --objective grit with PyTorch: the first step's gradients, and the losses of fifty steps, in fp32.

usage: grit_parity.py [--tools FOLDER] [--steps 50] [--jobs N] [--only SUBSTRING] [OUT.md]
       grit_parity.py --fixtures

Modes embedding, generative and unified; each pooling and attention code; several group sizes, losses of the generative part and
a projection. cls behind a causal mask is left out: it pools BOS alone, the same vector for all texts, and its gradient is nothing
but rounding. A step takes all records there are, so that the order of the data plays no part, and has four micro-batches.
torch_grit.py is the other side: transformers' model with whole masks, autograd, a GradCache of its own with other chunks, and a
norm summed in float64. A gradient's difference is the norm of the difference over the norm; that of a loss relative.
Exit status 1 when one is above its bound. --fixtures compares with the losses and gradients in
tests/objective/fixtures/grit instead, which were made without PyTorch. PYTHON needs torch, transformers, safetensors.
"""
import dataclasses
import json
import pathlib
import sys
import tempfile

import torch
import transformers
from safetensors import safe_open

import grit_data
import parity_cases
import torch_grit
import train_runs
from torch_grit import Options
from train_runs import ROOT, run

QUERIES, MICRO_BATCHES, CHUNK = 24, 4, 5
GRADIENT_BOUND, LOSS_BOUND = 1e-5, 5e-4
ADAMW = {"lr": 1e-4, "weight_decay": 0.01, "betas": (0.9, 0.95), "epsilon": 1e-8, "clip": 1.0}
SHAPE = {"vocab_size": 258, "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4,
         "num_key_value_heads": 2, "head_dim": 12, "max_position_embeddings": 256, "bos_token_id": 256, "eos_token_id": 257}

BASE = Options(query_max_len=48, passage_max_len=96, generative_max_len=256)
CASES = {
    **{f"embedding {pooling} {attention}": dataclasses.replace(BASE, pooling=pooling, attention=attention)
       for pooling in ("mean", "weightedmean", "cls", "lasttoken") for attention in ("bbcc", "cccc", "bb", "cc")
       if pooling != "cls" or attention.startswith("b")},
    "embedding projection": dataclasses.replace(BASE, projection=32),
    "embedding group 1": dataclasses.replace(BASE, group_size=1, temperature=0.1),
    **{f"generative {loss}": dataclasses.replace(BASE, mode="generative", gen_loss=loss)
       for loss in ("mixed", "token", "sample")},
    "generative prefixlm": dataclasses.replace(BASE, mode="generative", prefixlm=True),
    **{f"unified {pooling} {attention}": dataclasses.replace(BASE, mode="unified", pooling=pooling, attention=attention)
       for pooling, attention in (("mean", "bbcc"), ("mean", "cccc"), ("weightedmean", "bbcc"), ("lasttoken", "cccc"))},
    "unified factor": dataclasses.replace(BASE, mode="unified", gen_loss="token", gen_loss_factor=0.3),
}


class Sides:
    """Both sides of the comparison, on the same records and first weights."""

    def __init__(self, tools, scratch):
        self.tools, self.scratch = tools, scratch
        records = {"contrastive": list(grit_data.contrastive_records(QUERIES, 1)),
                   "generative": list(grit_data.generative_records(QUERIES, 2, words=4, spread=0.3, most_words=6))}
        self.records = records
        for name, kind in (("contrastive", "contrastive"), ("generative", "sft")):
            grit_data.pack_records(scratch, name, records[name], kind, tools)
        torch.manual_seed(3)
        config = transformers.LlamaConfig(**SHAPE, tie_word_embeddings=False, attn_implementation="eager")
        transformers.LlamaForCausalLM(config).save_pretrained(scratch / "base")

    def arguments(self, options):
        data = []
        if options.embeds:
            data += ["--data", self.scratch / "contrastive-shards"]
        if options.generates:
            data += ["--data", self.scratch / "generative-shards"]
        return ["-q", "--init", self.scratch / "base", "--objective", "grit", *options.flags(), *data,
                "--batch", QUERIES // MICRO_BATCHES, "--accum", MICRO_BATCHES, "--mixed-precision", "no",
                "--schedule", "constant", "--warmup", 0, "--lr", ADAMW["lr"], "--weight-decay", ADAMW["weight_decay"],
                "--beta1", ADAMW["betas"][0], "--beta2", ADAMW["betas"][1], "--adam-eps", ADAMW["epsilon"],
                "--log-every", 1, "--threads", 1, "--save-every", 0]

    def trained(self, name, options, steps, *more):
        out = self.scratch / name.replace(" ", "-")
        run(self.tools / "train", *self.arguments(options), "--steps", steps, "--out", out, *more)
        return out

    def start_of(self, name, options):
        """Weights of a model with a projection, which the base has not: those of a step that moves nothing."""
        if not options.projection:
            return self.scratch / "base"
        return self.trained(f"{name} start", options, 1, "--lr", 0, "--weight-decay", 0) / "latest"

    def gradients(self, name, options):
        """Of the first step, by parameter: what it leaves in the first moment is (1 - beta1) times them."""
        out = self.trained(f"{name} gradient", options, 1, "--clip", 0)
        with safe_open(out / "latest/trainwright_state.safetensors", "pt") as file:
            layout = json.loads(file.metadata()["layout"])
            moments = file.get_tensor("exp_avg").double() / (1 - ADAMW["betas"][0])
        return {key: moments[offset:offset + size] for key, offset, size in layout}

    def losses(self, name, options, steps):
        out = self.trained(f"{name} losses", options, steps, "--clip", ADAMW["clip"])
        return [record["loss_nats"] for record in train_runs.records_of(out, "step")]

    def model(self, options, start):
        language_model = transformers.LlamaForCausalLM.from_pretrained(start, dtype=torch.float32,
                                                                       attn_implementation="eager")
        model = torch_grit.Model(language_model, options)
        if options.projection:
            with safe_open(start / "2_Dense/model.safetensors", "pt") as file:
                model.projection.weight.data.copy_(file.get_tensor("linear.weight"))
                model.projection.bias.data.copy_(file.get_tensor("linear.bias"))
        return model

    def batch(self, options):
        return torch_grit.Batch.of(self.records["contrastive"], self.records["generative"], options)


def name_here(name):
    """Of a parameter of torch_grit.Model, as train names it."""
    if name.startswith("projection."):
        return "embedding_" + name
    return name.removeprefix("language_model.")


def relative(mine, theirs):
    return ((mine - theirs).norm() / theirs.norm()).item()


def compare(sides, name, steps):
    torch.set_num_threads(1)
    options = CASES[name]
    start = sides.start_of(name, options)
    model = sides.model(options, start)
    torch_grit.add_gradients(model, sides.batch(options), CHUNK)
    theirs = {name_here(key): parameter.grad.double().flatten()
              for key, parameter in torch_grit.parameters_in_training(model).items()}
    mine = sides.gradients(name, options)
    if mine.keys() != theirs.keys():
        raise RuntimeError(f"{name}: other parameters are trained: {sorted(mine.keys() ^ theirs.keys())}")
    whole = relative(torch.cat([mine[key] for key in theirs]), torch.cat(list(theirs.values())))
    worst = max(relative(mine[key], theirs[key]) for key in theirs if theirs[key].norm() > 0)

    model, batch = sides.model(options, start), sides.batch(options)
    terms = torch_grit.train(model, lambda step: batch, steps, chunk=CHUNK, **ADAMW)
    expected = [sum(value for key, value in step.items() if key.startswith("loss")) for step in terms]
    actual = sides.losses(name, options, steps)
    assert len(actual) == steps
    losses = max(abs(a - b) / abs(b) for a, b in zip(actual, expected))
    return {"gradient": whole, "worst_parameter": worst, "loss": losses, "first": expected[0],
            "last": expected[-1], "holds": whole <= GRADIENT_BOUND and losses <= LOSS_BOUND}


def options_of_fixture(case, records):
    kind, rest = case.split(".", 1)
    base = Options(temperature=records["temperature"])
    if kind == "generative":
        return dataclasses.replace(base, mode=kind, prefixlm=rest == "prefixlm", gen_loss="mixed" if rest == "prefixlm" else rest)
    if rest == "projection":
        return dataclasses.replace(base, projection=records["projection"])
    pooling, mask = rest.split(".")
    return dataclasses.replace(base, pooling=pooling, attention="bb" if mask == "bidirectional" else "cc")


def compare_fixtures(folder):
    """Whether PyTorch, in float64, gives the losses and gradients of the files."""
    records = json.loads((folder / "records.json").read_text())
    passages = [text for record in records["contrastive"] for text in record["pos"] + record["neg"]]

    def texts(those):
        return torch_grit.Texts.of([(text["ids"], text["first_pooled"]) for text in those])

    batch = torch_grit.Batch(texts([record["query"] for record in records["contrastive"]]), texts(passages),
                             [(row["ids"], row["predicted"]) for row in records["generative"]])
    holds = True
    with safe_open(folder / "expected.safetensors", "pt") as expected:
        for case in sorted({name.split("/")[0] for name in expected.keys()}):
            options = options_of_fixture(case, records)
            language_model = transformers.LlamaForCausalLM.from_pretrained(folder, dtype=torch.float64,
                                                                           attn_implementation="eager")
            model = torch_grit.Model(language_model, options).double()
            if options.projection:
                with safe_open(folder / "projection.safetensors", "pt") as file:
                    model.projection.weight.data.copy_(file.get_tensor("linear.weight"))
                    model.projection.bias.data.copy_(file.get_tensor("linear.bias"))
            (loss,) = torch_grit.add_gradients(model, batch).values()
            theirs = expected.get_tensor(f"{case}/loss").item()
            worst = max(relative(parameter.grad, expected.get_tensor(f"{case}/gradient.{name_here(name)}").double())
                        for name, parameter in torch_grit.parameters_in_training(model).items())
            fits = abs(loss / theirs - 1) < 1e-6 and worst < 1e-5
            print(f"{case}: loss {loss:.8f}, {theirs:.8f} in the file; worst gradient {worst:.1e}: {'holds' if fits else 'FAILS'}")
            holds = holds and fits
    return holds


def report(rows, steps):
    introduction = (
        f"scripts/compare/grit_parity.py: {QUERIES} queries a step in {MICRO_BATCHES} micro-batches, fp32, "
        f"torch {torch.__version__}, transformers {transformers.__version__}. Gradient: norm of the difference over the norm, of "
        f"all parameters (bound {GRADIENT_BOUND:g}) and of the worst one; loss: largest relative difference of {steps} steps "
        f"(bound {LOSS_BOUND:g}).")
    return parity_cases.report("GRIT beside PyTorch", introduction, rows, {
        "gradient": lambda row: f"{row['gradient']:.1e}", "worst parameter": lambda row: f"{row['worst_parameter']:.1e}",
        "loss": lambda row: f"{row['loss']:.1e}",
        "loss at first, at last": lambda row: f"{row['first']:.4f}, {row['last']:.4f}"})


def main():
    parser = parity_cases.arguments(__doc__)
    parser.add_argument("--fixtures", action="store_true")
    args = parser.parse_args()
    if args.fixtures:
        torch.set_num_threads(1)
        return 0 if compare_fixtures(ROOT / "tests/objective/fixtures/grit") else 1
    with tempfile.TemporaryDirectory() as scratch:
        sides = Sides(args.tools.resolve(), pathlib.Path(scratch))
        cases = {name: (sides, name, args.steps) for name in CASES if args.only in name}
        rows = parity_cases.compare_all(compare, cases, args.jobs)
    train_runs.write_report(report(rows, args.steps), args.out)
    return parity_cases.exit_status(rows)


if __name__ == "__main__":
    sys.exit(main())
