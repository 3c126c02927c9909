"""The runs and the report of embed.sh.

Embedding: a Llama of 6 layers of width 384 with random weights and a byte-level tokenizer, mean pooling of causal hidden
states, unit length; texts of lognormal lengths, so that batches of unlike texts are mostly padding. sentence-transformers
sorts texts by length and pads each batch of 32 to its longest. Its modes are the model as it is, compiled, and compiled with
max-autotune. Timed is the whole process of `embed`, and of the peer, which stays alive between rounds, what follows its imports, the
loading of the model and a first pass.

Search: vectors of normal numbers at unit length in .npy files. `evaluate` reads, searches and scores, and the whole process
counts; the peers' time counts from the opening of the files to the ten nearest rows of each query. NumPy reads and
multiplies blocks of 8,192 rows and keeps the best of each by argpartition; faiss has its flat index of inner products.

By the protocol of protocol.py.
"""
import argparse
import json
import os
import pathlib
import random
import resource
import subprocess
import sys

import protocol
from protocol import TORCH_MODES, Comparison, Contestant, Worker
from train_runs import version_of

WIDTH, LAYERS, NEAREST, BLOCK = 384, 6, 10, 8192
OURS = {"embed": "embed", "search": "evaluate"}
# {contestant: (peer, mode of torch.compile)}
PEERS = {"embed": {f"sentence-transformers, {name}": ("sentence-transformers", mode) for name, mode in TORCH_MODES.items()},
         "search": {"NumPy": ("NumPy", None), "faiss": ("faiss", None)}}
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


def peer_embed(data, threads, mode):
    """What a round does: embeds all texts and returns their vectors."""
    import sentence_transformers
    import torch
    torch.set_num_threads(threads)
    model = sentence_transformers.SentenceTransformer(str(data / "model"), device="cpu")
    if mode:
        body = model[0].auto_model
        body.forward = torch.compile(body.forward, mode=mode, dynamic=True)
    texts = (data / "texts.txt").read_text().splitlines()
    return lambda: model.encode(texts, batch_size=32)


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
    if who == "faiss":
        import faiss  # noqa: F401: imports are not timed
        return lambda: search_with_faiss(data, threads)
    return lambda: search_with_numpy(data)


def run_peer(options):
    """A Worker's other end: a round for each request, whose result goes to a file."""
    import numpy
    work = (peer_embed(options.data, options.peer_threads, options.mode) if options.peer == "sentence-transformers"
            else peer_search(options.data, options.peer, options.peer_threads))

    def one_round(count):
        result, took = protocol.timed(work)
        numpy.save(options.out, result)
        return {"work": count, "max_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, **took}

    protocol.serve(one_round)


def our_command(options, work, threads):
    data, scratch = options.data, options.scratch
    own = ["-q", "--threads", threads, "--summary", scratch / "summary.json"]
    if work == "embed":
        return ["embed", "--checkpoint", data / "model", data / "texts.txt", "-o", scratch / "embed.npy", *own]
    return ["evaluate", "--metric", "retrieval", "--query-vectors", data / "queries.npy", "--corpus-vectors",
            data / "corpus.npy", "--qrels", data / "qrels", "--top-k", NEAREST, "--metric-at", NEAREST, "--bootstrap", 0,
            "--run-out", scratch / "evaluate.run", *own]


def ours(options, work, threads):
    def measure():
        for name in ("embed.npy" if work == "embed" else "evaluate.run", "summary.json"):
            (options.scratch / name).unlink(missing_ok=True)
        done = protocol.run_command(our_command(options, work, threads))
        told = json.loads((options.scratch / "summary.json").read_text())
        return done.sample(count_of(options, work), **{name: told[name] for name in ("tokens", "tokens_if_padded") if name in told})
    return measure


def count_of(options, work):
    return options.texts if work == "embed" else options.queries


def worker_of(options, name, peer, mode, threads):
    libraries = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    command = [sys.executable, __file__, "--data", options.data, "--peer", peer, "--peer-threads", threads,
               *(["--mode", mode] if mode else []), options.scratch / f"{name}.npy"]
    return Worker(command, {**os.environ, **{library: str(threads) for library in libraries}}, longest_s=options.longest_answer)


def compare(options, record, work, threads):
    count, workers = count_of(options, work), []
    contestants = [Contestant(OURS[work], ours(options, work, threads))]
    for name, (peer, mode) in PEERS[work].items():
        if mode and mode not in protocol.torch_modes(options).values():
            continue
        worker = worker_of(options, name, peer, mode, threads)
        workers.append(worker)
        # A first pass of texts loads and compiles; a search has nothing to warm up but the imports, which are apart.
        prepare = (lambda worker=worker: worker.ask(count=count)) if work == "embed" else None
        contestants.append(Contestant(name, lambda worker=worker: worker.sample(count=count), peer=peer, prepare=prepare))
    unit, settings = ("texts", {"texts": options.texts}) if work == "embed" else ("queries", {"rows": options.rows,
                                                                                             "queries": options.queries})
    try:
        record.run(Comparison(f"{work}, threads {threads}", unit, contestants, threads=threads, settings=settings,
                              **protocol.how(options)))
    finally:
        for worker in workers:
            worker.close()


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
    for who in PEERS["embed"] if "embed" in works and (scratch / "embed.npy").exists() else ():
        if (scratch / f"{who}.npy").exists():
            difference = numpy.abs(numpy.load(scratch / "embed.npy") - numpy.load(scratch / f"{who}.npy")).max()
            found.append((f"largest difference of a number of embed's and {who}'s vectors (bound {DIFFERENCE_BOUND:g})",
                          float(difference), bool(difference <= DIFFERENCE_BOUND)))
    for who in PEERS["search"] if "search" in works and (scratch / "evaluate.run").exists() else ():
        share = numpy.mean(numpy.array(rows_of_run(scratch / "evaluate.run")) == numpy.load(scratch / f"{who}.npy"))
        found.append((f"share of {who}'s places that hold the same row (bound {LEAST_SHARE})", float(share),
                      bool(share >= LEAST_SHARE)))
    return found


def extra_text(record):
    """Markdown of agreement, and of what memory each takes."""
    lines = ["", "## Peak memory, MB", "", "| | contestant | MB | ours takes of it |", "|---|---|---:|---:|"]
    for state in record.states:
        results = protocol.Results(state)
        peaks = {name: max(sample["max_memory_bytes"] for sample in results.samples(name, "").values())
                 for name in results.contestants("")}
        lines += [f"| {state['name']} | {name} | {peak / 1e6:.0f} | {peaks[state['ours']] / peak:.0%} |" for name, peak in peaks.items()
                  if state["ours"] in peaks]
    lines += [f"\n{name}: {value:.3g}: {'holds' if holds else 'FAILS'}." for name, value, holds in record.extra.get("agreement", [])]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scratch", type=pathlib.Path)
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--works", default="embed,search")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--texts", type=int, default=200)
    parser.add_argument("--rows", type=int, default=200000)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--peer")
    parser.add_argument("--peer-threads", type=int)
    parser.add_argument("--mode")
    protocol.add_options(parser)
    parser.add_argument("out")
    options = parser.parse_args()
    if options.peer:
        run_peer(options)
        return 0
    options.data = options.data or options.scratch / "data"
    options.data.mkdir(parents=True, exist_ok=True)
    if options.prepare:
        prepare(options)
        return 0
    # In a process of its own: the peak memory of a process counts in those that it starts.
    subprocess.run([sys.executable, __file__, "--prepare", "--data", options.data, "--texts", str(options.texts), "--rows",
                    str(options.rows), "--queries", str(options.queries), "unused"], check=True)
    works = options.works.split(",")
    record = protocol.Record(options.out, "embed and exact search beside their peers", "scripts/compare/embed.sh", notes=(
        f"{', '.join(map(version_of, PACKAGES))}. {options.texts} texts through a model of {LAYERS} x {WIDTH}; the {NEAREST} nearest "
        f"of {options.queries} queries in {options.rows} x {WIDTH} vectors. What is timed is said in embed_side_by_side.py."))
    record.after = extra_text
    for threads in map(int, options.threads.split(",")):
        for work in works:
            compare(options, record, work, threads)
            record.extra["agreement"] = agreement(options, works) or record.extra.get("agreement", [])
            record.write()
    return 0 if all(holds for _, _, holds in record.extra["agreement"]) else 1


if __name__ == "__main__":
    sys.exit(main())
