#!/usr/bin/env python3
"""Opens checkpoints of the family ten in transformers and compares what it computes and generates with what our tools do.

usage: ten_folder.py [--tools FOLDER] [--only SUBSTRING] [OUT.md]
       ten_folder.py --fixtures

Each shape of ten_shapes.py is trained for some steps and opened with trust_remote_code. Logits are compared with those of
`evaluate --logits` (bound 1e-4), and what transformers saves again is read by `evaluate`, whose loss has to be the same. Greedy
continuations of a batch of prompts of unlike lengths are compared with those of `generate` on random weights, which transformers
saves: so young a trained model repeats a token, whatever came before.

--fixtures compares the modeling file alone, in float64, with torch_ten.py on tests/model/fixtures/ten_*: logits, gradients,
tokens one after another behind a cache, padding on either side, greedy and beam search with and without a cache. Exit status 1
when anything is above its bound. PYTHON needs torch, transformers, safetensors.
"""
import argparse
import datetime
import json
import pathlib
import shutil
import sys
import tempfile

import torch
import transformers
from safetensors.torch import load_file
from torch.nn import functional as F

import ten_shapes
import torch_ten
from train_runs import ROOT, run, write_report

LOGITS_BOUND, LOSS_BOUND, EXACT_BOUND = 1e-4, 1e-6, 1e-9
STEPS, NEW_TOKENS, END = 200, 64, 257
LEAST_KINDS = 12  # of tokens in all continuations, below which they tell nothing
PROMPTS = ["T", "O Romeo, ", "What is the ", "First Citizen: we know the patricians good; what authority surfeits on would"]
CODE = ROOT / "lib/model/python"
AUTO_MAP = {"AutoConfig": "configuration_ten.TenConfig", "AutoModel": "modeling_ten.TenModel",
            "AutoModelForCausalLM": "modeling_ten.TenForCausalLM"}


def opened(folder, kind=transformers.AutoModelForCausalLM):
    return kind.from_pretrained(folder, trust_remote_code=True, dtype=torch.float32).eval()


def padded(rows, side):
    """(ids, mask) [B, T]"""
    width = max(len(row) for row in rows)
    ids, mask = (torch.zeros(len(rows), width, dtype=torch.long) for _ in range(2))
    for number, row in enumerate(rows):
        place = slice(width - len(row), None) if side == "left" else slice(0, len(row))
        ids[number, place], mask[number, place] = torch.as_tensor(row), 1
    return ids, mask


def continued(model, rows, tokens, **options):
    """What transformers generates behind each row, padding and the end's mark cut off."""
    ids, mask = padded(rows, "left")
    out = model.generate(ids, attention_mask=mask, max_new_tokens=tokens, do_sample=False, pad_token_id=0,
                         eos_token_id=END, **options)[:, ids.shape[1]:].tolist()
    return [row[:row.index(END)] if END in row else row for row in out]


# --- Folders that train wrote ------------------------------------------------------------------------------------------


def generated_here(tools, folder):
    lines = "".join(json.dumps({"prompt": prompt}) + "\n" for prompt in PROMPTS)
    out = run(tools / "generate", "-q", "--checkpoint", folder, "--batch", len(PROMPTS), "--max-tokens", NEW_TOKENS, text=lines)
    return [[token for token in json.loads(line)["ids"] if token != END] for line in out.splitlines()]


def evaluated(tools, scratch, folder, *options):
    return json.loads(run(tools / "evaluate", "-q", "--checkpoint", folder, "--data", scratch / "documents", "--seq", 128,
                          "--batch", 2, *options))["loss_nats"]


@torch.no_grad()
def largest_difference(model, dump):
    """Of any logit of a dump, each document alone."""
    starts = dump["span_starts"].tolist()
    return max((model(dump["tokens"][None, begin:end], use_cache=False).logits[0] - dump["logits"][begin:end]).abs().max().item()
               for begin, end in zip(starts, starts[1:]))


def saved(model, folder, tokenizer_folder):
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    for tokenizer in tokenizer_folder.glob("tokenizer*"):
        shutil.copy(tokenizer, folder)
    return folder


@torch.no_grad()
def made_lively(model, folder):
    """The model with weights of which each tells."""
    reference = torch_ten.load(folder)
    torch_ten.random_weights(reference, torch.Generator().manual_seed(7))
    missing, unexpected = model.load_state_dict(reference.state_dict(), strict=False)
    assert not unexpected and set(missing) <= {"lm_head.weight"}, (missing, unexpected)
    model.tie_weights()
    return model


def compare(tools, scratch, shape):
    folder = scratch / shape.replace(" ", "-")
    config = ten_shapes.write_config(scratch / "config.json", shape)
    run(tools / "train", "-q", "--data", scratch / "documents", "--model", config, "--seq", 128, "--batch", 8, "--accum", 1,
        "--steps", STEPS, "--lr", "1e-2", "--mixed-precision", "no", "--save-every", 0, "--out", folder)
    model = opened(folder / "latest")
    loss = evaluated(tools, scratch, folder, "--logits", scratch / "logits.safetensors")
    difference = largest_difference(model, load_file(scratch / "logits.safetensors"))
    again = evaluated(tools, scratch, saved(model, scratch / "again", folder / "latest"))
    lively = saved(made_lively(model, folder / "latest"), scratch / "lively", folder / "latest")
    ours, theirs = generated_here(tools, lively), continued(model, [list(prompt.encode()) for prompt in PROMPTS], NEW_TOKENS)
    row = {"shape": shape, "logits": difference, "same": sum(a == b for a, b in zip(ours, theirs)),
           "kinds": len({token for tokens in ours for token in tokens}), "saved": again == loss}
    return row | {"holds": difference < LOGITS_BOUND and row["same"] == len(PROMPTS) and row["kinds"] >= LEAST_KINDS
                  and row["saved"]}


def report(rows):
    failed = sum(not row["holds"] for row in rows)
    lines = [f"# Folders of the family ten in transformers, {datetime.date.today()}", "",
             f"{len(rows) - failed} of {len(rows)} hold.", "",
             f"scripts/compare/ten_folder.py; transformers {transformers.__version__}, torch {torch.__version__}, fp32. Logits: "
             f"the largest difference from evaluate's (bound {LOGITS_BOUND:g}); continuations: how many of {len(PROMPTS)} of "
             f"{NEW_TOKENS} tokens are generate's, and how many tokens are among them; saved: what transformers writes has the "
             "same loss in evaluate.", "", "| model | logits | continuations | tokens | saved | |", "|---|---|---|---|---|---|"]
    for row in rows:
        if "error" in row:
            lines.append(f"| {row['shape']} | {' '.join(row['error'].split())} | | | | FAILS |")
            continue
        lines.append(f"| {row['shape']} | {row['logits']:.1e} | {row['same']} of {len(PROMPTS)} | {row['kinds']} | "
                     f"{'equal' if row['saved'] else 'DIFFERS'} | {'holds' if row['holds'] else 'FAILS'} |")
    return "\n".join(lines) + "\n"


def compare_folders(args):
    rows, tools = [], args.tools.resolve()
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        ten_shapes.make_shards(scratch, tools)
        for shape in ten_shapes.SHAPES:
            if args.only not in shape:
                continue
            try:
                rows.append(compare(tools, scratch, shape))
            except Exception as error:  # noqa: BLE001: whatever it is, it is told, and ends no other case
                rows.append({"shape": shape, "error": f"{type(error).__name__}: {error}", "holds": False})
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    write_report(report(rows), args.out)
    return bool(rows) and all(row["holds"] for row in rows)


# --- The modeling file and the formulas --------------------------------------------------------------------------------


def relative(mine, theirs):
    return ((mine - theirs).norm() / theirs.norm()).item() if theirs.norm() > 0 else mine.norm().item()


def gradient_difference(model, reference, documents):
    """Of any parameter, the norm of the difference over the norm."""
    for ids, labels in documents:
        logits = model(ids[None], use_cache=False).logits[0]
        F.cross_entropy(logits, labels, ignore_index=torch_ten.IGNORE, reduction="sum").backward()
    torch_ten.loss_sum(reference, documents).backward()
    mine = {name: parameter.grad for name, parameter in model.named_parameters()}
    theirs = {name: parameter.grad for name, parameter in reference.named_parameters()}
    assert mine.keys() == theirs.keys()
    return max(relative(mine[name], theirs[name]) for name in theirs)


def loss_difference(model, reference, ids_bt):
    """Of what transformers makes of labels: it shifts them, takes their mean, and computes in fp32."""
    wanted = F.cross_entropy(reference(ids_bt)[:, :-1].flatten(0, 1), ids_bt[:, 1:].flatten())
    return abs(model(ids_bt, labels=ids_bt).loss.item() / wanted.item() - 1)


def cached_difference(model, ids_bt, wanted):
    """In pieces of several lengths, and a token at a time."""
    worst = 0.0
    for lengths in ([1] * 12, [5, 1, 1, 60, 1, 2, 9, 1, 1], [len(ids_bt[0]) - 2, 1, 1]):
        cache, place = None, 0
        for length in lengths:
            out = model(ids_bt[:, place:place + length], past_key_values=cache, use_cache=True)
            worst = max(worst, (out.logits - wanted[:, place:place + length]).abs().max().item())
            cache, place = out.past_key_values, place + length
    return worst


def padding_difference(model, ids_bt, wanted, side):
    """Rows of unlike lengths in two calls, then steps behind both."""
    lengths, steps, worst = [1, 17, 40], 9, 0.0
    ids, mask = padded([row[:length] for row, length in zip(ids_bt, lengths)], side)
    first = model(ids[:, :25], attention_mask=mask[:, :25], use_cache=True)
    second = model(ids[:, 25:], attention_mask=mask, past_key_values=first.past_key_values, use_cache=True)
    logits, cache = torch.cat((first.logits, second.logits), dim=1), second.past_key_values
    for number, length in enumerate(lengths):
        place = slice(40 - length, None) if side == "left" else slice(0, length)
        worst = max(worst, (logits[number, place] - wanted[number, :length]).abs().max().item())
    for step in range(steps):
        mask = torch.cat((mask, torch.ones(len(lengths), 1, dtype=torch.long)), dim=1)
        following = torch.stack([row[length + step] for row, length in zip(ids_bt, lengths)])[:, None]
        out = model(following, attention_mask=mask, past_key_values=cache, use_cache=True)
        for number, length in enumerate(lengths):
            worst = max(worst, (out.logits[number, 0] - wanted[number, length + step]).abs().max().item())
    return worst


def generates_alike(model, reference, ids_bt):
    """Greedily what the reference's logits say; by beams the same with a cache and without."""
    rows = [ids_bt[0, :1].tolist(), ids_bt[1, :17].tolist(), ids_bt[2, :40].tolist()]
    wanted = []
    for row in rows:
        longer = list(row)
        for _ in range(20):
            longer.append(reference(torch.tensor([longer]))[0, -1].argmax().item())
        wanted.append(longer[len(row):])
    beams = [continued(model, rows, 8, num_beams=3, use_cache=use_cache) for use_cache in (True, False)]
    return continued(model, rows, 20) == wanted and beams[0] == beams[1]


def compare_fixture(fixture, scratch):
    folder = scratch / fixture.name
    shutil.copytree(fixture, folder)
    config = json.loads((fixture / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "auto_map": AUTO_MAP}))
    for file in CODE.glob("*.py"):
        shutil.copy(file, folder)
    model, reference = opened(folder).double(), torch_ten.load(fixture).double()
    expected = load_file(fixture / "expected.safetensors")
    documents = torch_ten.packed(expected["ids"][0], expected["span_starts"].tolist())
    found = {"gradient": gradient_difference(model, reference, documents)}
    ids_bt = torch.randint(config["vocab_size"], (3, 150), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        wanted = reference(ids_bt)
        found["logits"] = (model(ids_bt, use_cache=False).logits - wanted).abs().max().item()
        found["cache"] = cached_difference(model, ids_bt, wanted)
        found |= {side: padding_difference(model, ids_bt, wanted, side) for side in ("left", "right")}
        body = opened(folder, transformers.AutoModel).double()
        found["body"] = (model.lm_head(body(ids_bt).last_hidden_state) - wanted).abs().max().item()
        alike, loss = generates_alike(model, reference, ids_bt), loss_difference(model, reference, ids_bt)
    holds = alike and max(found.values()) < EXACT_BOUND and loss < LOSS_BOUND
    print(f"{fixture.name}: " + ", ".join(f"{name} {value:.1e}" for name, value in found.items())
          + f", loss {loss:.1e}, {'the same' if alike else 'OTHER'} continuations: {'holds' if holds else 'FAILS'}", flush=True)
    return holds


def compare_fixtures(args):
    with tempfile.TemporaryDirectory() as scratch:
        fixtures = [path for path in sorted((ROOT / "tests/model/fixtures").glob("ten_*")) if args.only in path.name]
        return bool(fixtures) and all([compare_fixture(path, pathlib.Path(scratch)) for path in fixtures])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", nargs="?", type=pathlib.Path)
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--only", default="")
    parser.add_argument("--fixtures", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    return 0 if (compare_fixtures if args.fixtures else compare_folders)(args) else 1


if __name__ == "__main__":
    sys.exit(main())
