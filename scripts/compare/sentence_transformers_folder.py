#!/usr/bin/env python3
"""Opens what train --objective grit saved in sentence-transformers and transformers, and compares vectors with embed's.

usage: sentence_transformers_folder.py [--tools FOLDER] [--tokenizer FILE] [--only SUBSTRING] [--golden FOLDER] [OUT.md]

Small models of every family, each pooling, bidirectional and causal, with and without a projection, trained for two steps on
records with and without instructions. Each folder opens in sentence-transformers (trust_remote_code for what is bidirectional
or has a pooling of its own) and encodes texts without an instruction by its prompt, and with one by a prompt that is given.
Also counted: texts that its tokenizer cuts otherwise than pretokenize, where prompt and text are cut together there and apart
here. Exit status 1 when vectors differ by more than 1e-5 in any element though the tokens are the same. --tokenizer is that
of pretokenize (default: bytes). --golden writes what a test without the library compares embed with, and compares nothing:
records, texts, and for each of a few folders the options of train that make it of FOLDER/make_model.py's model, and the vectors
that sentence-transformers gives. FOLDER is tests/embedding/fixtures/golden; vectors of texts that are too long go into cut, beside
it. PYTHON needs scripts/compare/grit.requirements.txt.
"""
import argparse
import itertools
import json
import pathlib
import sys
import tempfile

import numpy
import sentence_transformers
import torch
import transformers

import grit_data
import parity_cases
import ten_shapes
from train_runs import run, write_report

ROOT = pathlib.Path(__file__).resolve().parents[2]
BOUND = 1e-5
INSTRUCTION = "Find what the valley says"
COMMON = {"hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": True,
          "max_position_embeddings": 512, "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 2,
          "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 12}
FAMILIES = {
    "llama": {**COMMON, "architectures": ["LlamaForCausalLM"], "model_type": "llama"},
    "mistral": {**COMMON, "architectures": ["MistralForCausalLM"], "model_type": "mistral", "sliding_window": 20},
    "qwen2": {**COMMON, "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2"},
    "gpt2": {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": 48, "n_layer": 2, "n_head": 4,
             "n_positions": 512, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5},
    "gpt_neox": {"architectures": ["GPTNeoXForCausalLM"], "model_type": "gpt_neox", "hidden_size": 48,
                 "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 512,
                 "hidden_act": "gelu", "rotary_pct": 0.5, "rotary_emb_base": 10000, "layer_norm_eps": 1e-5},
    "ten": {**ten_shapes.COMMON, "max_position_embeddings": 512},  # is always causal
}
# A step with a learning rate of zero: the folder of the first weights.
GOLDEN_STEP = ("--objective grit --mode embedding --batch 2 --accum 1 --steps 1 --lr 0 --weight-decay 0 --seed 1 "
               "--save-model-only --query-max-len 256 --passage-max-len 256")
GOLDEN = {"mean-bbcc": "--pooling mean --attn bbcc", "weightedmean-cccc": "--pooling weightedmean --attn cccc",
          "cls-bbcc-projection": "--pooling cls --attn bbcc --projection 12",
          "lasttoken-cccc-not-normalized": "--pooling lasttoken --attn cccc --normalize off"}
GOLDEN_TEXTS = ["amber basin cedar", "x", "\nA line before it", "  two spaces", "grüße, 北京",
                "To be, or not to be, that is the question: whether 'tis nobler in the mind to suffer"]

# Five lines that a user writes; also in train(1).
EXAMPLE = """
from sentence_transformers import SentenceTransformer
model = SentenceTransformer(folder, trust_remote_code=True)
queries = model.encode(["Who speaks here?"], prompt="<s><|user|>\\nFind the speaker\\n<|embed|>\\n")
documents = model.encode(["To be, or not to be", "O Romeo, Romeo"], prompt_name="document")
print(model.similarity(queries, documents))
"""


def instructed_prompt(model):
    """The prompt of a text with the instruction, from that of one without."""
    return model.prompts["document"].replace("<|embed|>\n", f"<|user|>\n{INSTRUCTION}\n<|embed|>\n")


class Comparison:
    def __init__(self, tools, tokenizer, scratch):
        self.tools, self.tokenizer, self.scratch = tools, tokenizer, scratch
        records = list(grit_data.contrastive_records(32, 1, most_words=30))
        grit_data.write_records(scratch / "records.jsonl", records)
        run(tools / "pretokenize", "-q", "--tokenizer", tokenizer, "--records", "contrastive", "--template", "grit",
            scratch / "records.jsonl", "-o", scratch / "records.tokens")
        run(tools / "pack", "-q", scratch / "records.tokens", "-o", scratch / "shards")
        self.texts = [text for record in records for _, text in [record["query"], *record["pos"], *record["neg"]]]
        self.texts += ["\nA line before it", "  two spaces", "grüße, 北京"]
        (scratch / "texts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in self.texts))

    def train(self, name, family, options):
        config = self.scratch / f"{family}.json"
        config.write_text(json.dumps({**FAMILIES[family], "vocab_size": 258 if self.tokenizer == "bytes" else 32000}))
        out = self.scratch / name.replace(" ", "-")
        run(self.tools / "train", "-q", "--objective", "grit", "--mode", "embedding", "--data", self.scratch / "shards",
            "--model", config, "--batch", 8, "--steps", 2, "--lr", "1e-3", "--query-max-len", 256, "--passage-max-len", 256,
            *options, "--out", out)
        return out / "latest"

    def ours(self, folder, *options):
        path = self.scratch / "vectors.npy"
        path.unlink(missing_ok=True)
        run(self.tools / "embed", "-q", "--checkpoint", folder, "--role", "passage", *options, "-o", path,
            self.scratch / "texts.jsonl")
        return numpy.load(path)

    def tokens_that_differ(self, model, prompt):
        """Numbers of texts that are not the prompt's tokens and the text's own, one behind the other."""
        def ids(text):
            return model.tokenizer(text, add_special_tokens=False)["input_ids"]
        return {number for number, text in enumerate(self.texts) if ids(prompt + text) != ids(prompt) + ids(text)}

    def compare(self, name, family, options):
        folder = self.train(name, family, options)
        model = sentence_transformers.SentenceTransformer(str(folder), trust_remote_code=True, device="cpu")
        given = instructed_prompt(model)
        row = {"case": name, "family": family, "modules": [type(module).__name__ for module in model]}
        worst, differing = 0.0, 0
        for prompt, theirs, flags in ((model.prompts["document"], {"prompt_name": "document"}, []),
                                      (given, {"prompt": given}, ["--instruction", INSTRUCTION])):
            others = self.tokens_that_differ(model, prompt)
            same = [number for number in range(len(self.texts)) if number not in others]
            difference = numpy.abs(self.ours(folder, *flags) - model.encode(self.texts, **theirs))[same]
            worst, differing = max(worst, float(difference.max())), differing + len(others)
        row |= {"difference": worst, "cut_otherwise": differing, "texts": 2 * len(self.texts), "holds": worst <= BOUND}
        return row


def write_vectors(path, vectors):
    path.write_text("".join(json.dumps([float(f"{value:.9g}") for value in vector]) + "\n" for vector in vectors))


def write_cut_golden(folder, scratch):
    """Vectors of texts that are too long, where the tokenizer puts special tokens around each."""
    texts = [json.loads(line)["text"] for line in open(folder / "texts.jsonl")]
    for pooling in ("mean", "lasttoken"):
        made = scratch / f"cut-{pooling}"
        run(sys.executable, folder / "make_folder.py", made, pooling)
        model = sentence_transformers.SentenceTransformer(str(made), device="cpu")
        write_vectors(folder / f"{pooling}.vectors", model.encode(texts))


def write_golden(tools, folder, scratch):
    records = list(grit_data.contrastive_records(4, 1, most_words=8))
    grit_data.write_records(folder / "records.jsonl", records)
    texts = [{"text": text, "role": "passage"} for text in GOLDEN_TEXTS]
    texts += [{"text": text, "role": "query", "instruction": INSTRUCTION} for text in GOLDEN_TEXTS]
    (folder / "texts.jsonl").write_text("".join(json.dumps(text, ensure_ascii=False) + "\n" for text in texts))
    run(sys.executable, folder / "make_model.py", scratch / "base")
    run(tools / "pretokenize", "-q", "--tokenizer", "bytes", "--records", "contrastive", "--template", "grit",
        folder / "records.jsonl", "-o", scratch / "golden.tokens")
    run(tools / "pack", "-q", scratch / "golden.tokens", "-o", scratch / "golden-shards")
    for name, options in GOLDEN.items():
        options = f"{GOLDEN_STEP} {options}"
        run(tools / "train", "-q", "--init", scratch / "base", "--data", scratch / "golden-shards", "--out", scratch / name,
            "--threads", 1, *options.split())
        (folder / f"{name}.options").write_text(options + "\n")
        model = sentence_transformers.SentenceTransformer(str(scratch / name / "latest"), trust_remote_code=True, device="cpu")
        vectors = [*model.encode(GOLDEN_TEXTS, prompt_name="document"),
                   *model.encode(GOLDEN_TEXTS, prompt=instructed_prompt(model))]
        write_vectors(folder / f"{name}.vectors", vectors)
    (folder / "made_with.json").write_text(json.dumps({
        "sentence_transformers": sentence_transformers.__version__, "transformers": transformers.__version__,
        "torch": torch.__version__}) + "\n")


def cases():
    for pooling, attention in itertools.product(("mean", "weightedmean", "cls", "lasttoken"), ("bbcc", "cccc")):
        if pooling == "cls" and attention == "cccc":
            continue  # refused: the first token would see itself alone
        yield f"{pooling} {attention}", "llama", ["--pooling", pooling, "--attn", attention]
    yield "projection bbcc", "llama", ["--projection", "20"]
    yield "not normalised", "llama", ["--normalize", "off"]
    for family in FAMILIES:
        for attention in ("cccc",) if family == "ten" else ("bbcc", "cccc"):
            yield f"{family} {attention}", family, ["--attn", attention]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", nargs="?", type=pathlib.Path)
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--tokenizer", default="bytes")
    parser.add_argument("--only", default="")
    parser.add_argument("--golden", type=pathlib.Path)
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        if args.golden:
            write_golden(args.tools.resolve(), args.golden, pathlib.Path(scratch))
            write_cut_golden(args.golden.parent / "cut", pathlib.Path(scratch))
            return 0
        comparison = Comparison(args.tools.resolve(), args.tokenizer, pathlib.Path(scratch))
        for name, family, options in cases():
            if args.only not in name:
                continue
            rows.append(parity_cases.row_of(comparison.compare, name, (name, family, options)))
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
        exec(EXAMPLE, {"folder": str(comparison.train("example", "llama", []))})  # noqa: S102: what the page shows
    introduction = (
        f"scripts/compare/sentence_transformers_folder.py, tokenizer {args.tokenizer}; sentence-transformers "
        f"{sentence_transformers.__version__}, transformers {transformers.__version__}, torch {torch.__version__}. Largest "
        f"difference of any element of a vector from embed's (bound {BOUND:g}), over texts whose tokens are the same.")
    write_report(parity_cases.report("Folders of embedding models in sentence-transformers", introduction, rows, {
        "modules": lambda row: ", ".join(row["modules"]), "difference": lambda row: f"{row['difference']:.1e}",
        "texts cut otherwise": lambda row: f"{row['cut_otherwise']} of {row['texts']}"}), args.out)
    return parity_cases.exit_status(rows)


if __name__ == "__main__":
    sys.exit(main())
