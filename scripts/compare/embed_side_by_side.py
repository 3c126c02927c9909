"""The runs and the report of embed.sh.

Embedding: a Llama of 6 layers of width 384 with random weights and a byte-level tokenizer, mean pooling of causal hidden
states, unit length; texts of lognormal lengths, so that batches of unlike texts are mostly padding. sentence-transformers
sorts texts by length and pads each batch of 32 to its longest. Timed is the whole process of `embed`, and of the peer what
follows its imports and the loading of the model.

Search: vectors of normal numbers at unit length in .npy files. `evaluate` reads, searches and scores, and its summary's
wall_time_s counts; the peers' time counts from the opening of the files to the ten nearest rows of each query. NumPy
multiplies blocks of 8,192 rows and keeps the best by argpartition; faiss has its flat index of inner products.
"""
import argparse
import datetime
import importlib.metadata
import json
import os
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import time

WIDTH, LAYERS, NEAREST = 384, 6, 10


def make_model(folder):
    import sentence_transformers
    import tokenizers
    import torch
    import transformers
    from tokenizers import decoders, models, pre_tokenizers
    torch.manual_seed(1)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = tokenizers.Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token=alphabet[0])
    config = transformers.LlamaConfig(vocab_size=256, hidden_size=WIDTH, intermediate_size=1024, num_hidden_layers=LAYERS,
                                      num_attention_heads=6, num_key_value_heads=6, max_position_embeddings=1024,
                                      tie_word_embeddings=True)
    body = folder / "body"
    transformers.LlamaForCausalLM(config).save_pretrained(body)
    fast.save_pretrained(body)
    transformer = sentence_transformers.models.Transformer(str(body), max_seq_length=1024)
    pooling = sentence_transformers.models.Pooling(WIDTH, pooling_mode="mean")
    model = sentence_transformers.SentenceTransformer(
        modules=[transformer, pooling, sentence_transformers.models.Normalize()], device="cpu")
    model.save(str(folder / "model"))
    transformers.LlamaForCausalLM.from_pretrained(body).save_pretrained(folder / "model")  # with the names of the whole model


def make_texts(path, count):
    rng = random.Random(1)
    letters = "abcdefghijklmnopqrstuvwxyz     "
    lengths = [min(1000, max(4, int(rng.lognormvariate(4.2, 0.9)))) for _ in range(count)]
    path.write_text("".join("".join(rng.choice(letters) for _ in range(length)).strip() + "x\n" for length in lengths))


def make_vectors(scratch, rows, queries):
    import numpy
    rng = numpy.random.default_rng(1)
    for name, count in (("queries", queries), ("corpus", rows)):
        out = numpy.lib.format.open_memmap(scratch / f"{name}.npy", mode="w+", dtype="<f4", shape=(count, WIDTH))
        for begin in range(0, count, 65536):
            block = rng.standard_normal((min(65536, count - begin), WIDTH), dtype=numpy.float32)
            out[begin:begin + len(block)] = block / numpy.linalg.norm(block, axis=1, keepdims=True)
        out.flush()
    (scratch / "qrels").write_text("".join(f"{query} 0 {query} 1\n" for query in range(queries)))


def peer_embed(scratch):
    import numpy
    import sentence_transformers
    model = sentence_transformers.SentenceTransformer(str(scratch / "model"), device="cpu")
    texts = (scratch / "texts.txt").read_text().splitlines()
    start = time.perf_counter()
    vectors = model.encode(texts, batch_size=32)
    wall_s = time.perf_counter() - start
    numpy.save(scratch / "peer.npy", vectors)
    return wall_s


def peer_search(scratch, who):
    import numpy
    start = time.perf_counter()
    queries = numpy.load(scratch / "queries.npy")
    if who == "faiss":
        import faiss
        start = time.perf_counter()
        index = faiss.IndexFlatIP(WIDTH)
        index.add(numpy.load(scratch / "corpus.npy"))
        rows = index.search(queries, NEAREST)[1]
    else:
        corpus = numpy.load(scratch / "corpus.npy", mmap_mode="r")
        best, rows = numpy.empty((len(queries), 0), numpy.float32), numpy.empty((len(queries), 0), numpy.int64)
        for begin in range(0, len(corpus), 8192):
            scores = queries @ corpus[begin:begin + 8192].T
            best = numpy.concatenate([best, scores], axis=1)
            rows = numpy.concatenate([rows, numpy.broadcast_to(numpy.arange(begin, begin + scores.shape[1]), scores.shape)], 1)
            if best.shape[1] > NEAREST:
                kept = numpy.argpartition(-best, NEAREST - 1, axis=1)[:, :NEAREST]
                best, rows = numpy.take_along_axis(best, kept, 1), numpy.take_along_axis(rows, kept, 1)
        rows = numpy.take_along_axis(rows, numpy.argsort(-best, axis=1, kind="stable"), 1)
    wall_s = time.perf_counter() - start
    numpy.save(scratch / f"{who}-rows.npy", rows)
    return wall_s


def measured(command, scratch):
    """Wall time and peak memory in MiB: of our tools by their summary, of a peer by what its process prints."""
    summary = scratch / "summary.json"
    ours = command[0] != sys.executable
    own = ["-q", "--threads", str(os.cpu_count()), "--summary", str(summary)]
    done = subprocess.run([*map(str, command), *(own if ours else [])], check=True,
                          stdout=subprocess.PIPE, text=True)
    told = json.loads(summary.read_text() if ours else done.stdout.splitlines()[-1])
    return {"wall_s": told["wall_time_s"], "load": os.getloadavg()[0], "memory_mib": told["max_memory_bytes"] / 2 ** 20,
            "tokens": told.get("tokens"), "tokens_if_padded": told.get("tokens_if_padded")}


def same_rows(scratch, who):
    """Share of a peer's nearest rows that ours has at the same place."""
    import numpy
    ours = {}
    for line in (scratch / "run").read_text().splitlines():
        query, _, row, *_ = line.split()
        ours.setdefault(int(query), []).append(int(row))
    theirs = numpy.load(scratch / f"{who}-rows.npy")
    return float(numpy.mean([[a == b for a, b in zip(ours[query], theirs[query])] for query in range(len(theirs))]))


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown processor")


def report(options, runs, agreement):
    packages = ("torch", "transformers", "sentence-transformers", "numpy", "faiss-cpu")
    versions = ", ".join(f"{package} {importlib.metadata.version(package)}" for package in packages)
    lines = [f"# embed and exact search beside their peers, {datetime.date.today()}\n",
             f"scripts/compare/embed.sh: {os.cpu_count()} processors of an {processor()}, as many threads; {versions}. "
             f"{options.rounds} rounds in which the contestants take turns; {options.texts} texts; the {NEAREST} nearest of "
             f"{options.queries} queries in {options.rows} x {WIDTH} vectors. Ours is the time of a whole process, a peer's begins "
             "behind its imports and the loading of its model. Ratios are medians of rounds, with the least and the "
             "greatest.\n",
             "| work | who | s, each round | a peer takes as long | peak MiB | ours takes of it | load 1 min |",
             "|---|---|---|---|---|---|---|"]
    for (work, who), results in runs.items():
        ours = next(own for key, own in runs.items() if key[0] == work)
        ratios = [theirs["wall_s"] / own["wall_s"] for own, theirs in zip(ours, results)]
        memory = max(result["memory_mib"] for result in results)
        share = max(own["memory_mib"] for own in ours) / memory
        loads = [result["load"] for result in results]
        lines.append(f"| {work} | {who} | {' '.join(format(result['wall_s'], '.2f') for result in results)} | "
                     f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) | {memory:.0f} | {share:.0%} | "
                     f"{min(loads):.1f} to {max(loads):.1f} |")
    ours = runs["embed", "embed"][0]
    lines.append(f"\nTokens: {ours['tokens']}; padded to the longest of each of our batches they would be "
                 f"{ours['tokens_if_padded']}.")
    lines += [f"\n{name}: {value:.3g}" for name, value in agreement.items()]
    pathlib.Path(options.out + ".md").write_text("\n".join(lines) + "\n")
    everything = {"runs": {" ".join(key): value for key, value in runs.items()}, "agreement": agreement}
    pathlib.Path(options.out + ".json").write_text(json.dumps(everything, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scratch", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--texts", type=int, default=2000)
    parser.add_argument("--rows", type=int, default=1000000)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--peer")
    parser.add_argument("out")
    options = parser.parse_args()
    scratch = options.scratch
    if options.peer:
        wall_s = peer_embed(scratch) if options.peer == "embed" else peer_search(scratch, options.peer)
        memory_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps({"wall_time_s": wall_s, "max_memory_bytes": memory_bytes}))
        return
    import numpy
    make_model(scratch)
    make_texts(scratch / "texts.txt", options.texts)
    make_vectors(scratch, options.rows, options.queries)

    def peer(name):
        return [sys.executable, __file__, "--scratch", scratch, "--peer", name, "out"]

    commands = {
        ("embed", "embed"): ["embed", "--checkpoint", scratch / "model", scratch / "texts.txt", "-o", scratch / "ours.npy"],
        ("embed", "sentence-transformers"): peer("embed"),
        ("search", "evaluate"): ["evaluate", "--metric", "retrieval", "--query-vectors", scratch / "queries.npy",
                                 "--corpus-vectors", scratch / "corpus.npy", "--qrels", scratch / "qrels", "--top-k", NEAREST,
                                 "--metric-at", NEAREST, "--bootstrap", 0, "--run-out", scratch / "run"],
        ("search", "NumPy"): peer("numpy"),
        ("search", "faiss"): peer("faiss")}
    runs = {key: [] for key in commands}
    for _ in range(options.rounds):
        for key, command in commands.items():
            runs[key].append(measured(command, scratch))
    difference = numpy.abs(numpy.load(scratch / "ours.npy") - numpy.load(scratch / "peer.npy")).max()
    report(options, runs, {"largest difference of a number of embed's and sentence-transformers' vectors": float(difference),
                           "share of NumPy's places that hold the same row": same_rows(scratch, "numpy"),
                           "share of faiss's places that hold the same row": same_rows(scratch, "faiss")})


if __name__ == "__main__":
    main()
