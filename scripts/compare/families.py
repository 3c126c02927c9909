#!/usr/bin/env python3
"""Compares model families with transformers by the tools alone: load, logits, gradients, save, and load there again.

usage: families.py [--tools FOLDER] [--only NAME,...] [OUT.md]

Small random models of every shape in tests/model/make_fixtures.py, with a vocabulary of bytes, are saved by
transformers in fp32, bf16 and fp16. `evaluate --logits` reads each, in fp32 and with --mixed-precision bf16; `train
--init --steps 1 --lr 0` computes one gradient and saves; transformers computes the same spans from the same weights in
fp32 and opens what was saved. The sequences of 96 tokens are longer than the sliding windows and the original contexts.
Exit status 1 when a difference is above its tolerance. PYTHON needs torch, transformers, safetensors.
"""
import argparse
import datetime
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import torch
import transformers
from safetensors.torch import load_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests/model")]
import make_fixtures  # noqa: E402
import sample_order  # noqa: E402

VOCABULARY = 258  # the bytes tokenizer's
SEQUENCE = 96
BUILDERS = ((make_fixtures.llama, make_fixtures.LLAMA_SHAPES), (make_fixtures.llama, make_fixtures.ROPE_SHAPES),
            (make_fixtures.mistral, make_fixtures.MISTRAL_SHAPES), (make_fixtures.qwen2, make_fixtures.QWEN2_SHAPES),
            (make_fixtures.gpt2, make_fixtures.GPT2_SHAPES), (make_fixtures.neox, make_fixtures.NEOX_SHAPES))
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
LOGITS_TOLERANCE, GRADIENT_TOLERANCE = 1e-4, 1e-4


def build(builder, shape):
    """GPT-NeoX's builder sets the vocabulary itself."""
    shape = {"num_key_value_heads": 1, **shape} if builder is make_fixtures.llama else shape
    if builder is make_fixtures.neox:
        model = builder(shape)
        config = transformers.GPTNeoXConfig(**{**model.config.to_dict(), "vocab_size": VOCABULARY})
        config._attn_implementation = "eager"
        return transformers.GPTNeoXForCausalLM(config)
    base = {} if builder is make_fixtures.gpt2 or "vocab_size" in shape else make_fixtures.SMALL
    return builder({**base, **shape, "vocab_size": VOCABULARY})


def opened(folder, dtype):
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation="eager").eval()


def run(*command):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {result.stderr[-800:]}")
    return result.stdout


def spans_of(dump, values):
    starts = dump["span_starts"].tolist()
    return [values[begin:end] for begin, end in zip(starts, starts[1:])]


def logits_of(model, dump):
    """Of each span, alone."""
    with torch.no_grad():
        return [model(ids[None]).logits[0].float() for ids in spans_of(dump, dump["tokens"])]


def largest_difference(some, others):
    return max((a - b).abs().max().item() for a, b in zip(some, others))


def gradient_of(model, samples):
    """The mean loss of all labels, and the norm of its gradient."""
    loss, labels = 0.0, 0
    for tokens, following in itertools.chain.from_iterable(samples):
        logits = model(torch.tensor([tokens])).logits[0]
        targets = torch.tensor(following)
        loss = loss + torch.nn.functional.cross_entropy(logits, targets, ignore_index=sample_order.IGNORE,
                                                        reduction="sum")
        labels += (targets != sample_order.IGNORE).sum().item()
    loss = loss / labels
    model.zero_grad()
    loss.backward()
    squares = sum(p.grad.double().square().sum().item() for p in model.parameters())
    return loss.item(), squares ** 0.5


def compare(name, builder, shape, dtype, scratch):
    folder = scratch / f"{name}-{dtype}"
    torch.manual_seed(len(name))
    model = build(builder, shape).float()
    make_fixtures.randomize(model)
    model.to(DTYPES[dtype]).save_pretrained(folder)
    model = opened(folder, torch.float32)  # anew: .to() rounds the frequencies of rotary positions, too
    row, reference = {"model": name, "file": dtype}, None
    for precision, flag in (("fp32", "no"), ("bf16", "bf16")):
        path = str(scratch / "logits.safetensors")
        run("evaluate", "--quiet", "--checkpoint", str(folder), "--data", str(scratch / "shards"), "--seq", str(SEQUENCE),
            "--batch", "2", "--mixed-precision", flag, "--logits", path)
        dump = load_file(path)
        reference = reference or logits_of(model, dump)
        row[f"logits_{precision}"] = largest_difference(spans_of(dump, dump["logits"]), reference)
        row["largest_logit"] = dump["logits"].abs().max().item()
    row["transformers_bf16"] = largest_difference(logits_of(opened(folder, torch.bfloat16), dump), reference)

    out = scratch / f"{name}-{dtype}-run"
    trained = min(SEQUENCE, model.config.max_position_embeddings)
    run("train", "--quiet", "--init", str(folder), "--data", str(scratch / "shards"), "--seq", str(trained), "--batch", "4",
        "--accum", "1", "--steps", "1", "--lr", "0", "--mixed-precision", "no", "--out", str(out))
    records = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    plan = next(record for record in records if record["type"] == "run_begin")["plan"]
    step = next(record for record in records if record["type"] == "step")
    stream = sample_order.training_samples(sample_order.read_chunks(scratch / "chunks.jsonl"), trained, plan["seed"],
                                           plan["window_chunks"])
    # Anew: dynamic rotary positions remember the longest sequence seen, for one of the original context's length, too.
    loss, norm = gradient_of(opened(folder, torch.float32), list(itertools.islice(stream, plan["batch"])))
    row["loss"] = abs(step["loss_nats"] / loss - 1)
    row["gradient"] = abs(step["grad_norm"] / norm - 1)
    again = opened(out / "latest", torch.float32)
    mine, saved = model.state_dict(), again.state_dict()
    row["saved_equal"] = mine.keys() == saved.keys() and all(torch.equal(mine[key], saved[key]) for key in mine)
    ids = dump["tokens"][None, :int(dump["span_starts"][1])]
    with torch.no_grad():
        row["reloaded_equal"] = torch.equal(model(ids).logits, again(ids).logits)
    return row


def holds(row):
    return (row["logits_fp32"] < LOGITS_TOLERANCE and row["gradient"] < GRADIENT_TOLERANCE and row["saved_equal"]
            and row["reloaded_equal"] and row["logits_bf16"] < 3 * row["transformers_bf16"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", default=str(ROOT / "build/release/bin"))
    parser.add_argument("--only", default="")
    parser.add_argument("out", nargs="?")
    options = parser.parse_args()
    os.environ["PATH"] = options.tools + os.pathsep + os.environ["PATH"]
    transformers.logging.set_verbosity_error()
    rows, failed = [], []
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        lines = (ROOT / "examples/data/tinyshakespeare.txt").read_bytes().splitlines()[:200]
        (scratch / "text").write_bytes(b" ".join(lines))
        run("bash", "-o", "pipefail", "-c", f"pretokenize -q --format file --tokenizer bytes {scratch}/text | "
            f"pack -q --chunk 960 --mode concat -o {scratch}/shards")
        (scratch / "chunks.jsonl").write_text(run("pack", "--cat", "--json", str(scratch / "shards")))
        for builder, shapes in BUILDERS:
            for name, shape in shapes.items():
                for dtype in DTYPES:
                    if options.only and name not in options.only.split(","):
                        continue
                    try:
                        row = compare(name, builder, shape, dtype, scratch)
                    except RuntimeError as error:
                        failed.append(f"{name} {dtype}: {error}")
                        continue
                    rows.append(row)
                    print(json.dumps(row), file=sys.stderr, flush=True)
    wrong = [f"{row['model']} {row['file']}" for row in rows if not holds(row)]
    text = [f"# Model families beside transformers, {datetime.date.today()}\n",
            f"`scripts/compare/families.py`; transformers {transformers.__version__}, PyTorch {torch.__version__}, both on the "
            f"CPU. Largest absolute differences of logits; relative differences of the loss and of the gradient's norm of one "
            f"step; all against transformers in fp32 on the weights of the file. Saved: every tensor that `train --lr 0` "
            f"wrote equals the file's; reloaded: transformers computes equal bits from it.\n",
            "| model | file | logits, fp32 | largest logit | logits, bf16 | transformers in bf16 | loss | gradient | saved | "
            "reloaded |", "|---|---|---|---|---|---|---|---|---|---|"]
    for row in rows:
        text.append(f"| {row['model']} | {row['file']} | {row['logits_fp32']:.1e} | {row['largest_logit']:.1f} | "
                    f"{row['logits_bf16']:.1e} | {row['transformers_bf16']:.1e} | {row['loss']:.1e} | {row['gradient']:.1e} | "
                    f"{'equal' if row['saved_equal'] else 'DIFFERS'} | {'equal' if row['reloaded_equal'] else 'DIFFERS'} |")
    text.append(f"\n{len(rows)} of {len(rows) + len(failed)} loaded; outside the tolerances (logits {LOGITS_TOLERANCE:g}, gradient "
                f"{GRADIENT_TOLERANCE:g}, bf16 three times transformers'): {', '.join(wrong) or 'none'}."
                + "".join(f"\nRefused: {line}" for line in failed))
    report = "\n".join(text) + "\n"
    if options.out:
        pathlib.Path(options.out).write_text(report)
    else:
        print(report)
    return 1 if wrong or failed else 0


if __name__ == "__main__":
    sys.exit(main())
