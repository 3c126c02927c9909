#!/usr/bin/env python3
"""Times tokenizers beside each other on real text; writes OUT.json and OUT.md.

usage: tokenize_side_by_side.py --data DIR --encode-speed PROGRAM --pretokenize PROGRAM --out OUT [--rounds N]

A contestant runs in a process of its own, on one thread, and encodes all documents of a corpus twice with one
tokenizer object. The CPU time (user and system, of the whole process) of the first pass is "cold": nothing is
remembered from text seen before. The second pass is "warm". Documents are in memory before the clock
starts, loading the tokenizer and a first call with one letter are apart, and peers are called with all documents at
once by the function of theirs that makes the fewest Python objects. MB = 1e6 bytes of UTF-8. The ids of every
contestant are compared by SHA-256.

The row "pretokenize" is the whole tool: JSON, zstd and writing to /dev/null included, user and system time.
"""
import argparse
import datetime
import hashlib
import json
import os
import pathlib
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time

CORPORA = ["english-32MB", "code-16MB"]
PASSES = 2
LONGEST_S = 200
GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
PEERS = {
    "gpt2": ["Hugging Face tokenizers", "tiktoken", "fastokens", "gigatoken"],
    "mistral-v1": ["sentencepiece", "gigatoken"],
}
FILES = {"gpt2": "gpt2.tokenizer.json", "mistral-v1": "mistral-v1.model"}


def read_documents(path):
    return [text.decode() for text in pathlib.Path(path).read_bytes().split(b"\0")[:-1]]


def digest(lists):
    import numpy
    sha = hashlib.sha256()
    tokens = 0
    for ids in lists:
        array = numpy.asarray(ids, dtype="<u4")
        tokens += len(array)
        sha.update(array.tobytes() + b"\xff\xff\xff\xff")
    return tokens, sha.hexdigest()


def gpt2_bytes(token):
    printable = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    table = {chr(b): b for b in printable}
    table.update({chr(256 + n): b for n, b in enumerate(b for b in range(256) if b not in printable)})
    return bytes(table[c] for c in token)


def make_encoder(peer, model):
    """(encode: documents -> something, lists: that -> one sequence of ids a document, version)"""
    def same(result):
        return result
    if peer == "Hugging Face tokenizers":
        import tokenizers
        tokenizer = tokenizers.Tokenizer.from_file(model)
        return (lambda docs: tokenizer.encode_batch_fast(docs, add_special_tokens=False),
                lambda result: (e.ids for e in result), tokenizers.__version__)
    if peer == "tiktoken":
        import tiktoken
        file = json.loads(pathlib.Path(model).read_text())
        special = {t["content"] for t in file["added_tokens"]}
        ranks = {gpt2_bytes(t): i for t, i in file["model"]["vocab"].items() if t not in special}
        encoding = tiktoken.Encoding("gpt2", pat_str=GPT2, mergeable_ranks=ranks, special_tokens={})
        return lambda docs: encoding.encode_ordinary_batch(docs, num_threads=1), same, tiktoken.__version__
    if peer == "sentencepiece":
        import sentencepiece
        processor = sentencepiece.SentencePieceProcessor(model_file=model)
        return lambda docs: processor.encode(docs, num_threads=1), same, sentencepiece.__version__
    from importlib.metadata import version
    if peer == "gigatoken":
        import gigatoken
        load = gigatoken.Tokenizer.from_sentencepiece if model.endswith(".model") else gigatoken.Tokenizer
        tokenizer = load(model)

        def lists(result):
            ids, offsets = result.layout.content.data, result.layout.offsets.data
            return (ids[int(a):int(b)] for a, b in zip(offsets, offsets[1:]))
        return lambda docs: tokenizer.encode_batch(docs, parallel=False), lists, version(peer)
    import fastokens
    import numpy
    tokenizer = fastokens.Tokenizer.from_file(model)

    def split(result):
        ids, offsets = numpy.frombuffer(result[0], "<u4"), numpy.frombuffer(result[1], "<u8")
        return (ids[int(a):int(b)] for a, b in zip(offsets, offsets[1:]))
    return lambda docs: tokenizer.encode_batch_flat(docs), split, version(peer)


def run_peer(peer, model, documents_path):
    documents = read_documents(documents_path)
    begin = time.process_time()
    encode, lists, version = make_encoder(peer, model)
    list(lists(encode(["a"])))  # what the library imports or builds at its first call
    report = {"load_s": time.process_time() - begin, "version": version, "documents": len(documents),
              "bytes": sum(len(text.encode()) for text in documents), "cpu_s": []}
    for turn in range(PASSES):
        begin = time.process_time()
        result = encode(documents)
        report["cpu_s"].append(time.process_time() - begin)
        if turn == 0:
            report["tokens"], report["sha256"] = digest(lists(result))
        del result
    print(json.dumps(report))


def measure(command):
    environment = dict(os.environ, RAYON_NUM_THREADS="1", OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false")
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=LONGEST_S)
    except subprocess.TimeoutExpired:
        return {"failed": f"nothing within {LONGEST_S} s"}
    if done.returncode != 0:
        return {"failed": (done.stderr.strip().splitlines() or ["?"])[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def tool_time(pretokenize, model, corpus):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([pretokenize, "--quiet", "--threads", "1", "--tokenizer", model, "-f", corpus], check=True,
                   stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data")
    parser.add_argument("--encode-speed")
    parser.add_argument("--pretokenize")
    parser.add_argument("--out")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer", nargs=3)
    options = parser.parse_args()
    if options.peer:
        return run_peer(*options.peer)

    data = pathlib.Path(options.data)
    load = [os.getloadavg()[0]]
    results, tool = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for corpus in CORPORA:
            text = subprocess.run(["zstd", "-dcq", data / f"bench/{corpus}.jsonl.zst"], capture_output=True, check=True)
            texts = [json.loads(line)["text"] for line in text.stdout.splitlines()]
            assert not any("\0" in document for document in texts)
            with open(f"{folder}/{corpus}", "wb") as file:
                file.write("".join(document + "\0" for document in texts).encode())
        for _ in range(options.rounds):
            for model, peers in PEERS.items():
                model_path = str(data / "tokenizers" / FILES[model])
                for corpus in CORPORA:
                    runs = {"trainwright": [options.encode_speed, model_path, f"{folder}/{corpus}", str(PASSES)]}
                    for peer in peers:
                        runs[peer] = [sys.executable, __file__, "--peer", peer, model_path, f"{folder}/{corpus}"]
                    for name, command in runs.items():
                        results.setdefault((model, corpus, name), []).append(measure(command))
                        load.append(os.getloadavg()[0])
                    seconds = tool_time(options.pretokenize, model_path, str(data / f"bench/{corpus}.jsonl.zst"))
                    tool.setdefault((model, corpus), []).append(seconds)

    rows = []
    for (model, corpus, name), reports in results.items():
        if "failed" in reports[0]:
            rows.append({"model": model, "corpus": corpus, "contestant": name, "failed": reports[0]["failed"]})
            continue
        reference = results[(model, corpus, PEERS[model][0])][0]
        size = reports[0]["bytes"] / 1e6
        cold = [size / report["cpu_s"][0] for report in reports]
        warm = [size / min(report["cpu_s"][1:]) for report in reports]
        rows.append({
            "model": model, "corpus": corpus, "contestant": name, "version": reports[0].get("version"),
            "cold_mb_per_cpu_s": {"best": max(cold), "median": statistics.median(cold)},
            "warm_mb_per_cpu_s": {"best": max(warm), "median": statistics.median(warm)},
            "load_s": min(report["load_s"] for report in reports), "documents": reports[0]["documents"],
            "bytes": reports[0]["bytes"], "tokens": reports[0]["tokens"], "sha256": reports[0]["sha256"],
            "reference": PEERS[model][0],
            "same_ids": all(r["sha256"] == reference.get("sha256") for r in reports)})
    sizes = {row["corpus"]: row["bytes"] / 1e6 for row in rows if "bytes" in row}
    tools = [{"model": m, "corpus": c, "mb_per_cpu_s": {"best": sizes[c] / min(s), "median": sizes[c] / statistics.median(s)}}
             for (m, c), s in tool.items()]
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    summary = {"schema": "trainwright.compare.tokenize/1", "date": datetime.date.today().isoformat(),
               "cpu": cpu, "processors": os.cpu_count(), "python": platform.python_version(), "rounds": options.rounds,
               "load_1min": [min(load), max(load)], "encoders": rows, "pretokenize": tools}
    pathlib.Path(options.out + ".json").write_text(json.dumps(summary, indent=1) + "\n")

    lines = [f"# Tokenizers side by side, {summary['date']}", "",
             f"{cpu}, {os.cpu_count()} processors, 1-minute load {min(load):.1f} to {max(load):.1f}, best of "
             f"{options.rounds} rounds (median in brackets), made by `scripts/compare/tokenize.sh`. MB of text for a CPU "
             "second, one thread; what is timed is said in tokenize_side_by_side.py.", ""]
    for model, peers in PEERS.items():
        lines += [f"## {model}", "", f"| corpus | tokenizer | cold | warm | load s | tokens | ids as {peers[0]} |",
                  "|---|---|---:|---:|---:|---:|---|"]
        for row in (r for r in rows if r["model"] == model):
            name = row["contestant"] + (f" {row['version']}" if row.get("version") else "")
            if "failed" in row:
                lines.append(f"| {row['corpus']} | {name} | failed: {row['failed']} | | | | |")
                continue
            cold, warm = row["cold_mb_per_cpu_s"], row["warm_mb_per_cpu_s"]
            lines.append(f"| {row['corpus']} | {name} | {cold['best']:.1f} ({cold['median']:.1f}) | {warm['best']:.1f} "
                         f"({warm['median']:.1f}) | {row['load_s']:.3f} | {row['tokens']:,} | "
                         f"{'same' if row['same_ids'] else 'DIFFERENT'} |")
        lines += [f"| {t['corpus']} | pretokenize, the whole tool | {t['mb_per_cpu_s']['best']:.1f} "
                  f"({t['mb_per_cpu_s']['median']:.1f}) | | | | |" for t in tools if t["model"] == model]
        lines.append("")
    pathlib.Path(options.out + ".md").write_text("\n".join(lines))


main()
