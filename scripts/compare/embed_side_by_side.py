"""The runs and the report of embed.sh.

Embedding: a Llama of 6 layers of width 384 with random weights and a byte-level tokenizer, mean pooling of causal hidden
states, unit length; texts of lognormal lengths, so that batches of unlike texts are mostly padding. sentence-transformers
sorts texts by length and pads each batch of 32 to its longest. Timed is the whole process of `embed`, and of the peer what
follows its imports and the loading of the model.

Search: vectors of normal numbers at unit length in .npy files. `evaluate` reads, searches and scores, and its summary's
wall_time_s counts; the peers' time counts from the opening of the files to the ten nearest rows of each query. NumPy reads and
multiplies blocks of 8,192 rows and keeps the best of each by argpartition; faiss has its flat index of inner products.
"""
import argparse
import datetime
import json
import os
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import time

from train_runs import processor, version_of

WIDTH, LAYERS, NEAREST, BLOCK = 384, 6, 10, 8192
OURS = {"embed": "embed", "search": "evaluate"}
PEERS = {"embed": ("sentence-transformers",), "search": ("NumPy", "faiss")}
PACKAGES = ("torch", "transformers", "sentence-transformers", "numpy", "faiss-cpu")
DIFFERENCE_BOUND, LEAST_SHARE = 1e-5, 0.999


def make_model(folder):
    import sentence_transformers
    import tokenizers
    import torch
    import transformers
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
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
    model = sentence_transformers.SentenceTransformer(
        modules=[Transformer(str(body), max_seq_length=1024), Pooling(WIDTH, pooling_mode="mean"), Normalize()], device="cpu")
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


def prepare(options):
    """Model, texts and vectors in the folder of data, unless it has them."""
    made, wanted = options.data / "made.json", {key: getattr(options, key) for key in ("texts", "rows", "queries")}
    if made.exists() and json.loads(made.read_text()) == wanted:
        return
    made.unlink(missing_ok=True)
    make_model(options.data)
    make_texts(options.data / "texts.txt", options.texts)
    make_vectors(options.data, options.rows, options.queries)
    made.write_text(json.dumps(wanted))


def peer_embed(data, threads):
    import numpy
    import sentence_transformers
    import torch
    torch.set_num_threads(threads)
    model = sentence_transformers.SentenceTransformer(str(data / "model"), device="cpu")
    texts = (data / "texts.txt").read_text().splitlines()
    start = time.perf_counter()
    vectors = model.encode(texts, batch_size=32)
    wall_s = time.perf_counter() - start
    return wall_s, lambda path: numpy.save(path, vectors)


def search_with_numpy(data):
    import numpy
    queries, corpus = numpy.load(data / "queries.npy"), numpy.load(data / "corpus.npy", mmap_mode="r")
    best, rows = numpy.empty((len(queries), 0), numpy.float32), numpy.empty((len(queries), 0), numpy.int64)
    with open(data / "corpus.npy", "rb") as file:  # pages of a map would count as memory of the process
        file.seek(corpus.offset)
        for begin in range(0, len(corpus), BLOCK):
            count = min(BLOCK, len(corpus) - begin)
            scores = queries @ numpy.fromfile(file, numpy.float32, count * WIDTH).reshape(count, WIDTH).T
            kept = numpy.argpartition(scores, max(0, count - NEAREST), axis=1)[:, -NEAREST:]
            best = numpy.concatenate([best, numpy.take_along_axis(scores, kept, 1)], axis=1)
            rows = numpy.concatenate([rows, kept + begin], axis=1)
            order = numpy.argsort(-best, axis=1, kind="stable")[:, :NEAREST]
            best, rows = numpy.take_along_axis(best, order, 1), numpy.take_along_axis(rows, order, 1)
    return rows


def search_with_faiss(data, threads):
    import faiss
    import numpy
    faiss.omp_set_num_threads(threads)
    index = faiss.IndexFlatIP(WIDTH)
    index.add(numpy.load(data / "corpus.npy"))
    return index.search(numpy.load(data / "queries.npy"), NEAREST)[1]


def peer_search(data, who, threads):
    import numpy
    if who == "faiss":
        import faiss  # noqa: F401: imports are not timed
    start = time.perf_counter()
    rows = search_with_faiss(data, threads) if who == "faiss" else search_with_numpy(data)
    wall_s = time.perf_counter() - start
    return wall_s, lambda path: numpy.save(path, rows)


def run_peer(options):
    threads = int(options.threads)
    if options.peer == "sentence-transformers":
        wall_s, save = peer_embed(options.data, threads)
    else:
        wall_s, save = peer_search(options.data, options.peer, threads)
    print(json.dumps({"wall_time_s": wall_s, "max_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))
    save(options.out)


def command_of(options, work, who, threads):
    """(command, its environment) of a contestant."""
    data, scratch = options.data, options.scratch
    if who != OURS[work]:
        libraries = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        return ([sys.executable, __file__, "--data", data, "--threads", threads, "--peer", who, scratch / f"{who}.npy"],
                {**os.environ, **{name: str(threads) for name in libraries}})
    own = ["-q", "--threads", threads, "--summary", scratch / "summary.json"]
    if work == "embed":
        return ["embed", "--checkpoint", data / "model", data / "texts.txt", "-o", scratch / "ours.npy", *own], os.environ
    return ["evaluate", "--metric", "retrieval", "--query-vectors", data / "queries.npy", "--corpus-vectors",
            data / "corpus.npy", "--qrels", data / "qrels", "--top-k", NEAREST, "--metric-at", NEAREST, "--bootstrap", 0,
            "--run-out", scratch / "run", *own], os.environ


def measured(options, work, who, threads):
    """Wall time and peak memory: of our tools by their summary, of a peer by what its process prints."""
    for name in ("ours.npy", "run", "summary.json"):
        (options.scratch / name).unlink(missing_ok=True)
    command, environment = command_of(options, work, who, threads)
    before = os.getloadavg()[0]
    done = subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE, text=True, env=environment)
    ours = who == OURS[work]
    told = json.loads((options.scratch / "summary.json").read_text() if ours else done.stdout.splitlines()[-1])
    if work == "embed" and ours:
        (options.scratch / "ours.npy").replace(options.scratch / "embed.npy")
    if work == "search" and ours:
        (options.scratch / "run").replace(options.scratch / "evaluate.run")
    return {"wall_s": told["wall_time_s"], "load": [before, os.getloadavg()[0]],
            "max_memory_bytes": told["max_memory_bytes"], "tokens": told.get("tokens"),
            "tokens_if_padded": told.get("tokens_if_padded")}


def rows_of_run(path):
    ours = {}
    for line in path.read_text().splitlines():
        query, _, row, *_ = line.split()
        ours.setdefault(int(query), []).append(int(row))
    return [ours[query] for query in range(len(ours))]


def agreement(options, works):
    """(what, value, whether it is as it has to be) of the last round's output."""
    import numpy
    scratch, found = options.scratch, []
    if "embed" in works:
        difference = numpy.abs(numpy.load(scratch / "embed.npy") - numpy.load(scratch / "sentence-transformers.npy")).max()
        found.append((f"largest difference of a number of embed's and sentence-transformers' vectors "
                      f"(bound {DIFFERENCE_BOUND:g})",
                      float(difference), bool(difference <= DIFFERENCE_BOUND)))
    for who in PEERS["search"] if "search" in works else ():
        share = numpy.mean(numpy.array(rows_of_run(scratch / "evaluate.run")) == numpy.load(scratch / f"{who}.npy"))
        found.append((f"share of {who}'s places that hold the same row (bound {LEAST_SHARE})", float(share),
                      bool(share >= LEAST_SHARE)))
    return found


def row(options, key, runs):
    work, who, threads = key
    results, ours = runs[key], runs[work, OURS[work], threads]
    done = options.texts if work == "embed" else options.queries
    walls_s = [result["wall_s"] for result in results]
    tokens = ours[0]["tokens"]
    ratios = [theirs["wall_s"] / own["wall_s"] for own, theirs in zip(ours, results)]
    memory = max(result["max_memory_bytes"] for result in results)
    loads = [load for result in results for load in result["load"]]
    per_s = f"{done / statistics.median(walls_s):.0f}"
    tokens_per_s = f"{tokens / statistics.median(walls_s):.0f}" if tokens else ""
    return (f"| {work} | {threads} | {who} | {statistics.median(walls_s):.2f} ({min(walls_s):.2f} to {max(walls_s):.2f}) | "
            f"{per_s} | {tokens_per_s} | {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) | "
            f"{memory / 1e6:.0f} | {max(own['max_memory_bytes'] for own in ours) / memory:.0%} | "
            f"{min(loads):.1f} to {max(loads):.1f} |")


def write_report(options, rounds, runs, agreements):
    versions = ", ".join(map(version_of, PACKAGES))
    lines = [f"# embed and exact search beside their peers, {datetime.date.today()}\n",
             f"scripts/compare/embed.sh: {os.cpu_count()} processors of an {processor()}; {versions}. {rounds} rounds in which "
             f"the contestants take turns, in the other order every other round; {options.texts} texts through a model of "
             f"{LAYERS} x {WIDTH}; the {NEAREST} nearest of {options.queries} queries in {options.rows} x {WIDTH} vectors. Ours is "
             "the time of a whole process, a peer's begins behind its imports and the loading of its model. Medians of "
             "rounds, with the least and the greatest; memory is the largest of a process.\n",
             "| work | threads | who | s | texts or queries/s | tokens/s | takes as long as ours | peak memory MB | "
             "ours takes of it | load 1 min |", "|---" * 10 + "|"]
    lines += [row(options, key, runs) for key in runs]
    told = next((results[0] for (work, who, _), results in runs.items() if who == "embed"), None)
    if told:
        lines.append(f"\nTokens: {told['tokens']}; padded to the longest of each of our batches they would be "
                     f"{told['tokens_if_padded']}.")
    lines += [f"\n{name}: {value:.3g}: {'holds' if holds else 'FAILS'}." for name, value, holds in agreements]
    pathlib.Path(options.out + ".md").write_text("\n".join(lines) + "\n")
    everything = {"runs": {" ".join(map(str, key)): value for key, value in runs.items()}, "agreement": agreements}
    pathlib.Path(options.out + ".json").write_text(json.dumps(everything, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scratch", type=pathlib.Path)
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--works", default="embed,search")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", default=f"{os.cpu_count()},1")
    parser.add_argument("--texts", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=1000000)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--peer")
    parser.add_argument("out")
    options = parser.parse_args()
    if options.peer:
        run_peer(options)
        return 0
    options.data = options.data or options.scratch / "data"
    options.data.mkdir(parents=True, exist_ok=True)
    prepare(options)
    if options.prepare:
        return 0
    works = options.works.split(",")
    keys = [(work, who, int(threads)) for work in works for threads in options.threads.split(",")
            for who in (OURS[work], *PEERS[work])]
    runs, agreements = {key: [] for key in keys}, []
    for number in range(1, options.rounds + 1):
        for key in keys[::1 if number % 2 else -1]:
            runs[key].append(measured(options, *key))
            print(*key, f"{runs[key][-1]['wall_s']:.2f} s, {runs[key][-1]['max_memory_bytes'] / 1e6:.0f} MB", file=sys.stderr,
                  flush=True)
        agreements = agreement(options, works)
        write_report(options, number, runs, agreements)
    return 0 if all(holds for _, _, holds in agreements) else 1


if __name__ == "__main__":
    sys.exit(main())
