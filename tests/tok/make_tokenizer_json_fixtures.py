#!/usr/bin/env python3
"""Makes tests/tok/testdata/tokenizer_json: small tokenizer.json files of every family that the suite reads, and what
Hugging Face tokenizers makes of documents with them.

usage: make_tokenizer_json_fixtures.py [--goldens] [OUTPUT_DIR]      (needs the Python package tokenizers)

<family>.json is the tokenizer; goldens.json holds its ids and decoded text for written-out documents, and hashes of
its ids for the random documents of tokenizer_json_documents.py, DOCUMENTS_PER_HASH documents a hash. --goldens keeps
the tokenizers that are there.
"""
import json
import pathlib
import sys

import tokenizers
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import tokenizer_json_documents as documents  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
DOCUMENTS, DOCUMENTS_PER_HASH = 20000, 500
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
CAPITALS, SMALL, ENDING = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
O200K = (rf"[^\r\n\p{{L}}\p{{N}}]?{CAPITALS}*{SMALL}+{ENDING}|[^\r\n\p{{L}}\p{{N}}]?{CAPITALS}+{SMALL}*{ENDING}"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")

byte_level = pre_tokenizers.ByteLevel


def special(text, **properties):
    return AddedToken(text, special=True, normalized=False, **properties)


def split(expression):
    return pre_tokenizers.Split(Regex(expression), "isolated")


FAMILIES = {
    "gpt2": dict(pre=byte_level(add_prefix_space=False), post=processors.ByteLevel(trim_offsets=False),
                 added=[AddedToken("<|endoftext|>", special=True, normalized=True)]),
    "neox": dict(norm=normalizers.NFC(), pre=byte_level(add_prefix_space=False),
                 post=processors.ByteLevel(),
                 trained=["<|endoftext|>", "<|padding|>"],
                 added=[AddedToken(" " * n, normalized=True) for n in range(24, 1, -1)]),
    "llama3": dict(pre=pre_tokenizers.Sequence([split(LLAMA3), byte_level(add_prefix_space=False, use_regex=False)]),
                   ignore_merges=True,
                   added=[special(x) for x in ("<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>",
                                               "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")]),
    "qwen2": dict(norm=normalizers.NFC(),
                  pre=pre_tokenizers.Sequence([split(QWEN2), byte_level(add_prefix_space=False, use_regex=False)]),
                  post=processors.ByteLevel(trim_offsets=False),
                  added=[special("<|endoftext|>"), special("<|im_start|>"), special("<|im_end|>"),
                         AddedToken("<tool_call>", normalized=False), AddedToken("</tool_call>", normalized=False)]),
    "gpt_oss": dict(pre=pre_tokenizers.Sequence([split(O200K), byte_level(add_prefix_space=False, use_regex=False)]),
                    ignore_merges=True, added=[special("<|startoftext|>"), special("<|endoftext|>"), special("<|channel|>")]),
    "smollm2": dict(pre=pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                 byte_level(add_prefix_space=False)]),
                    trained=["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>"]),
    # No family: everything else that is read. Bytes without a token, with and without a token for them.
    "prefixed": dict(pre=byte_level(add_prefix_space=True), alphabet=False,
                     added=[AddedToken("<mask>", lstrip=True, normalized=False, special=True),
                            AddedToken("<right>", rstrip=True, normalized=False),
                            AddedToken("<both>", lstrip=True, rstrip=True, normalized=True),
                            AddedToken("word", single_word=True, normalized=False),
                            AddedToken("wor", normalized=False), AddedToken("  ", normalized=False),
                            AddedToken("\u00e9t\u00e9", normalized=True)]),
    "unknown": dict(norm=normalizers.NFC(), pre=split(QWEN2), unk="<unk>", alphabet=False, invert=True,
                    added=[AddedToken("e\u0301t\u00e9", normalized=True), AddedToken("\u0301", normalized=False)]),
    "uncut": dict(pre=byte_level(add_prefix_space=False, use_regex=False)),
}


def train(name, family):
    tokenizer = Tokenizer(models.BPE(unk_token=family.get("unk"), ignore_merges=family.get("ignore_merges", False)))
    tokenizer.pre_tokenizer = family["pre"] if name != "unknown" else pre_tokenizers.Sequence(
        [family["pre"], byte_level(add_prefix_space=False, use_regex=False)])
    if "norm" in family:
        tokenizer.normalizer = family["norm"]
    tokenizer.decoder = decoders.ByteLevel()
    text = (HERE.parent.parent / "examples/data/tinyshakespeare.txt").read_text()[:200000]
    lines = text.splitlines(keepends=True) if name != "uncut" else text[:20000].split("\n")
    if family.get("alphabet", True):
        lines += [part * 20 for part in documents.TEXTS]
    trainer = trainers.BpeTrainer(
        vocab_size=900, show_progress=False, special_tokens=family.get("trained", []) + ([family["unk"]] if "unk" in family else []),
        initial_alphabet=byte_level.alphabet() if family.get("alphabet", True) else [])
    tokenizer.train_from_iterator(lines, trainer)
    if "post" in family:
        tokenizer.post_processor = family["post"]
    tokenizer.add_tokens(family.get("added", []))
    if name == "llama3":
        tokenizer.post_processor = processors.Sequence([
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(single="<|begin_of_text|> $A", pair="<|begin_of_text|> $A <|begin_of_text|> $B:1",
                                          special_tokens=[("<|begin_of_text|>",
                                                           tokenizer.token_to_id("<|begin_of_text|>"))])])
    out = json.loads(tokenizer.to_str())
    if family.get("invert"):
        out["pre_tokenizer"]["pretokenizers"][0].update(behavior="Removed", invert=True)
    if name == "gpt2":  # older files write pairs as one text, and leave fields out
        out["model"]["merges"] = [" ".join(pair) for pair in out["model"]["merges"]]
        for key in ("byte_fallback", "ignore_merges"):
            del out["model"][key]
        del out["pre_tokenizer"]["use_regex"]
    return json.dumps(out, ensure_ascii=False, separators=(",", ":")) + "\n"


def main():
    arguments = sys.argv[1:]
    keep = "--goldens" in arguments
    rest = [a for a in arguments if not a.startswith("--")]
    output = pathlib.Path(rest[0]) if rest else HERE / "testdata/tokenizer_json"
    output.mkdir(parents=True, exist_ok=True)
    goldens = {"made_with": f"tokenizers {tokenizers.__version__}", "seed": documents.SEED,
               "documents": DOCUMENTS, "documents_per_hash": DOCUMENTS_PER_HASH, "texts": documents.TEXTS,
               "written": documents.WRITTEN, "families": {}}
    texts = [documents.document(documents.SEED, i) for i in range(DOCUMENTS)]
    goldens["document_hash"] = f"{documents.hash_of_text(texts):016x}"
    for name, family in FAMILIES.items():
        path = output / f"{name}.json"
        if not keep:
            path.write_text(train(name, family))
        tokenizer = Tokenizer.from_file(str(path))
        written = [tokenizer.encode(text, add_special_tokens=False).ids for text in documents.WRITTEN]
        hashes = []
        for begin in range(0, DOCUMENTS, DOCUMENTS_PER_HASH):
            encoded = tokenizer.encode_batch_fast(texts[begin:begin + DOCUMENTS_PER_HASH], add_special_tokens=False)
            hashes.append(f"{documents.hash_of_ids([e.ids for e in encoded]):016x}")
        goldens["families"][name] = {
            "ids": written, "decoded": [tokenizer.decode(ids, skip_special_tokens=True) for ids in written],
            "hashes": hashes}
    (output / "goldens.json").write_text(json.dumps(goldens, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
