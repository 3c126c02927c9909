#!/usr/bin/env python3
"""Compares the ids of tokenizer.json files of every family with Hugging Face tokenizers on real and random text, and times
both on one thread; writes OUT.json and OUT.md.

usage: tokenizer_json_families.py --data DIR --encode-speed PROGRAM [--rounds N] [--cpus LIST] [--every N] [--timed LIST] OUT

DIR is the folder of real data (tokenizers/, text/, bench/). Real files of these families cannot be had without a network,
so each is made here: of the SentencePiece models of DIR by the converter of the package transformers, and by the rules of
its converters for Llama, Gemma and T5; WordPiece by training on text/wikitext2-valid.txt; o200k by the vocabulary of GPT-2
with that way to cut. --every N takes every N-th document of bench/ (default 8). Documents are the paragraphs of text/, those
of bench/, and the random ones of tests/tok/tokenizer_json_documents.py, which hold many scripts.

The ids of all documents are compared: the exit status is 1 where any differ. --timed names the texts that are timed, of
text,english,code,random (default: english), by the protocol of protocol.py: MB = 1e6 bytes of UTF-8 for a CPU second. The library
encodes all documents at once by encode_batch_fast with one thread, in a process of its own; encode_speed's first pass, with nothing
remembered, is "cold" beside it, its second "warm".
Needs tokenizers, transformers, sentencepiece, protobuf (scripts/compare/tokenizer_json_families.requirements.txt).
"""
import argparse
import hashlib
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

os.environ["RAYON_NUM_THREADS"] = "1"
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/tok"))
import protocol  # noqa: E402
import tokenizer_json_documents as random_documents  # noqa: E402
import tokenizers  # noqa: E402
import transformers  # noqa: E402
from protocol import Comparison, Contestant, Sample  # noqa: E402
from sentencepiece import sentencepiece_model_pb2  # noqa: E402
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers  # noqa: E402
from transformers.convert_slow_tokenizer import SpmConverter  # noqa: E402

MARK = "\u2581"
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
LLAMA_DECODER = [decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]


def proto_of(path):
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(path.read_bytes())
    return proto


def converted(proto, legacy):
    pieces = [(piece.piece, piece.score) for piece in proto.pieces]
    vocab = pieces if proto.trainer_spec.model_type == 1 else {text: i for i, (text, _) in enumerate(pieces)}
    return SpmConverter.build_tokenizer_from_spm_proto(proto, vocab, legacy=legacy)


def marks(*texts):
    return [AddedToken(text, special=True, normalized=False) for text in texts]


def llama(proto, kind):
    tokenizer = converted(proto, True)
    control = [piece.piece for piece in proto.pieces if piece.type in (3, 4)]
    if kind == "legacy":
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)])
        tokenizer.pre_tokenizer = None
    elif kind == "gemma":
        tokenizer.normalizer = normalizers.Replace(" ", MARK)
        tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    else:
        tokenizer.normalizer = normalizers.Sequence([])
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(MARK, "first", split=False)
    out = json.loads(tokenizer.to_str())
    out["model"]["ignore_merges"] = False
    if kind != "legacy" and not out["normalizer"].get("normalizers", True):
        out["normalizer"] = None
    tokenizer = Tokenizer.from_str(json.dumps(out))
    tokenizer.decoder = decoders.Sequence(LLAMA_DECODER if kind != "gemma" else LLAMA_DECODER[:3])
    tokenizer.add_tokens(marks(*control))
    return tokenizer


def t5(proto, split):
    tokenizer = converted(proto, True)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap),
                                                 normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), MARK)])
    metaspace = pre_tokenizers.Metaspace(MARK, "always")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), metaspace]) if split else metaspace
    tokenizer.decoder = decoders.Metaspace(MARK, "always")
    tokenizer.add_tokens(marks("<unk>", "<s>", "</s>"))
    return tokenizer


def bert(text, lowercase):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.train_from_iterator(text.split("\n"), trainers.WordPieceTrainer(
        vocab_size=8000, show_progress=False, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    return tokenizer


def o200k(path):
    out = json.loads(path.read_text())
    out["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": O200K}, "behavior": "Isolated", "invert": False},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}]}
    out["model"]["ignore_merges"] = True
    return Tokenizer.from_str(json.dumps(out))


def families(data):
    folder = data / "tokenizers"
    mistral1, mistral3 = proto_of(folder / "mistral-v1.model"), proto_of(folder / "mistral-v3.model")
    small = proto_of(folder / "unigram-1k.model")
    wikitext = (data / "text/wikitext2-valid.txt").read_text()
    return {
        "Mistral v1 as Llama 2 (Prepend, Replace)": llama(mistral1, "legacy"),
        "Mistral v3 as Llama 2, its marks added": llama(mistral3, "legacy"),
        "Mistral v1 as Llama, not legacy (Metaspace first)": llama(mistral1, "metaspace"),
        "Mistral v1 as Gemma (Replace, Split)": llama(mistral1, "gemma"),
        "Mistral v1 by transformers' general converter": converted(mistral1, True),
        "unigram-1k as T5 (Precompiled, Metaspace)": t5(small, False),
        "unigram-1k as XLM-R (WhitespaceSplit, Metaspace)": t5(small, True),
        "unigram-1k by transformers' general converter": converted(small, True),
        "WordPiece, uncased": bert(wikitext, True),
        "WordPiece, cased": bert(wikitext, False),
        "GPT-2 cut as o200k": o200k(folder / "gpt2.tokenizer.json"),
    }


def corpora(data, every):
    def bench(name):
        text = subprocess.run(["zstd", "-dc", data / f"bench/{name}.jsonl.zst"], capture_output=True, check=True).stdout
        return [json.loads(line)["text"] for line in text.splitlines()[::every]]

    paragraphs = [part for path in sorted((data / "text").glob("*.txt")) for part in re.split(r"\n\n+", path.read_text())]
    made = [random_documents.document(7, i) for i in range(20000)]
    found = {"text": paragraphs, "english": bench("english-32MB"), "code": bench("code-16MB"), "random": made}
    return {name: [text.replace("\0", "") for text in texts if text.replace("\0", "")] for name, texts in found.items()}


def ids_of(program, model, documents):
    """Of encode_speed: a list a document."""
    with tempfile.TemporaryDirectory() as folder:
        ids = pathlib.Path(folder) / "ids"
        subprocess.run([program, model, documents, "1", "--ids", ids], capture_output=True, check=True)
        numbers = struct.unpack(f"<{ids.stat().st_size // 4}I", ids.read_bytes())
    lists, current = [], []
    for number in numbers:
        if number == 0xFFFFFFFF:
            lists.append(current)
            current = []
        else:
            current.append(number)
    return lists


def encode(tokenizer, texts):
    return tokenizer.encode_batch_fast(texts, add_special_tokens=False)


def compared_ids(options, model, texts, documents):
    """How many documents and tokens there are, and how many documents differ."""
    theirs = [one.ids for one in encode(Tokenizer.from_file(str(model)), texts)]
    mine = ids_of(options.encode_speed, model, documents)
    return {"documents": len(theirs), "tokens": sum(map(len, theirs)),
            "differ": sum(a != b for a, b in zip(mine, theirs)) + abs(len(mine) - len(theirs))}


def run_peer(model, documents):
    """One measurement of the library, in this process."""
    texts = [text.decode() for text in pathlib.Path(documents).read_bytes().split(b"\0")[:-1]]
    tokenizer = Tokenizer.from_file(model)
    encode(tokenizer, ["a"])  # what it builds at its first call
    print(json.dumps(protocol.timed(lambda: encode(tokenizer, texts))[1]))


def comparison_of(options, name, model, texts, documents):
    megabytes = sum(len(text.encode()) for text in texts) / 1e6

    def suite():
        told = json.loads(protocol.run_command([options.encode_speed, model, documents, "2", "1"]).stdout)
        return {aspect: Sample(megabytes, told["cpu_s"][turn], told["wall_s"][turn]) for turn, aspect in enumerate(("cold", "warm"))}

    def library():  # in a process of its own, as its thread stays on the processors that it began on
        done = protocol.run_command([sys.executable, __file__, "--peer", model, documents])
        return {"cold": Sample.of(megabytes, json.loads(done.stdout.splitlines()[-1]))}

    return Comparison(name, "MB of text", [Contestant("trainwright", suite), Contestant("Hugging Face tokenizers", library)],
                      settings={"megabytes": round(megabytes, 3)}, **protocol.how(options))


def ids_text(record):
    lines = ["", "## Ids", "", "| file, text | documents | tokens | differ |", "|---|---:|---:|---:|"]
    lines += [f"| {name} | {told['documents']:,} | {told['tokens']:,} | {told['differ']} |" for name, told in record.extra.items()]
    return "\n".join(lines) + "\n"


def main():
    if sys.argv[1:2] == ["--peer"]:
        return run_peer(*sys.argv[2:])
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--encode-speed", required=True)
    parser.add_argument("--every", type=int, default=8)
    parser.add_argument("--timed", type=lambda text: text.split(","), default=["english"])
    protocol.add_options(parser)
    parser.add_argument("out")
    options = parser.parse_args()
    corpora_of = corpora(options.data, options.every)
    hash_of = hashlib.sha256(json.dumps(list(corpora_of.values())).encode()).hexdigest()[:12]
    record = protocol.Record(options.out, "tokenizer.json families beside Hugging Face tokenizers",
                             "scripts/compare/tokenizer_json_families.sh", notes=(
                                 f"tokenizers {tokenizers.__version__}, transformers {transformers.__version__}; texts {hash_of}, every "
                                 f"{options.every}th document of bench/."))
    record.after = ids_text
    with tempfile.TemporaryDirectory() as folder:
        for corpus, texts in corpora_of.items():
            pathlib.Path(folder, corpus).write_bytes(b"".join(text.encode() + b"\0" for text in texts))
        for number, (family, tokenizer) in enumerate(families(options.data).items()):
            model = pathlib.Path(folder) / f"{number}.json"
            model.write_text(tokenizer.to_str())
            for corpus, texts in corpora_of.items():
                name, documents = f"{family}, {corpus}", pathlib.Path(folder, corpus)
                if name not in record.extra:
                    record.extra[name] = compared_ids(options, model, texts, documents)
                    record.write()
                if corpus in options.timed:
                    record.run(comparison_of(options, name, model, texts, documents))
    return protocol.exit_status([f"{name}: {told['differ']} documents differ" for name, told in record.extra.items() if told["differ"]])


if __name__ == "__main__":
    sys.exit(main())
