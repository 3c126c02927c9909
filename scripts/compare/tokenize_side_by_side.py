#!/usr/bin/env python3
"""Times tokenizers beside each other on real text; writes OUT.json and OUT.md.

usage: tokenize_side_by_side.py --data DIR --encode-speed PROGRAM --pretokenize PROGRAM --pack PROGRAM --out OUT
                                [--rounds N] [--spm-encode PROGRAM]

A contestant runs in a process of its own and encodes all documents of a corpus twice with one tokenizer object, on one
thread. The CPU time (user and system, of the whole process) of the first pass is "cold": nothing is remembered from
text seen before. The second pass is "warm". Documents are in memory before the clock starts, loading the tokenizer and a
first call with one letter are apart, and peers are called with all documents at once by the function of theirs that makes
the fewest Python objects. MB = 1e6 bytes of UTF-8. The ids of every contestant are compared by SHA-256. Rounds are
interleaved; contestants below 20 MB/s run in the first round alone, and the slowest encode once.

spm_encode reads lines: it gets the documents' lines, loses the newlines, and its ids cannot be compared. gigatoken,
fastokens and Hugging Face tokenizers get a tokenizer.json that is made here from the .model, by the rule of the
transformers package; "gigatoken, .model" reads the model itself.

Two threads: wall time of a pass by one and by two threads in turn, cold and (ours) the third, and the same for threads that
only count (spin); "scaling" is twice the first ratio divided by the second: what is lost by the tokenizer, not by the machine. Where others take
the processors now and then, that is noise, and twice the ratio of the CPU times, "by CPU time", says how much work is done twice.

pretokenize is timed whole: JSON, zstd and writing to /dev/null included. With pack behind it, it reads a corpus once and
eight times over: pack looks at a window of 16 Mi tokens before it writes, more than a corpus has.
"""
import argparse
import datetime
import hashlib
import json
import os
import pathlib
import platform
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

PIPE_TIMES = (1, 8)
CORPORA = ["english-32MB", "code-16MB"]
LONGEST_S = 200
GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
# The first is the reference. How many passes each gets, and whether it takes part in every round.
PEERS = {
    "gpt2": {"Hugging Face tokenizers": (1, False), "tiktoken": (1, False), "fastokens": (2, True), "gigatoken": (2, True)},
    "mistral-v1": {"sentencepiece": (1, False), "Hugging Face tokenizers": (1, False), "fastokens": (2, True),
                   "gigatoken": (2, True), "gigatoken, .model": (2, False), "spm_encode": (1, False)},
}
FILES = {"gpt2": "gpt2.tokenizer.json", "mistral-v1": "mistral-v1.model"}
THREADED = ["gigatoken", "sentencepiece"]  # peers that are timed on two threads, too
GROUPS = [  # of the profile, by the beginning of a symbol or the name of a library
    ("new pieces: merging", r"BytePairMerges|MergeUnit|EncodeUnit|EncodePiece|unordered_map|_Hashtable<unsigned"),
    ("cutting, looking up, copying ids", r"SentencePieceBpe::Encode|ByteLevelBpeTokenizer|CharacterCuts|PieceMemo|AsciiPiece|PieceEnd"),
    ("loading the tokenizer", r"Vocabulary|ParseTokenizerJson|Reader::|sentencepiece|protobuf|ParseSentencePieceModel|CharacterClasses|_Hashtable"),
    ("zstd", r"libzstd|ZSTD|HUF_"),
    ("JSON", r"simdjson|DocumentText|JsonlText|CountCharacters|FindInvalidUtf8"),
    ("writing and hashing", r"TokenStreamWriter|XXH|xxhash|DocumentOutput|libcrypto"),
    ("kernel", r"kernel|\[k\]"),
    ("copying memory", r"memmove|memcpy|memset"),
]


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


def tokenizer_json_of(model, path):
    """Writes the tokenizer.json that transformers makes of a SentencePiece BPE model that leaves the text as it is."""
    import sentencepiece
    processor = sentencepiece.SentencePieceProcessor(model_file=model)
    pieces = [processor.id_to_piece(i) for i in range(processor.get_piece_size())]
    ids = {piece: i for i, piece in enumerate(pieces)}
    merges = []
    for i, piece in enumerate(pieces):
        splits = [(piece[:k], piece[k:]) for k in range(1, len(piece)) if piece[:k] in ids and piece[k:] in ids]
        merges += [(processor.get_score(i), left, right) for left, right in sorted(splits, key=lambda s: (ids[s[0]], ids[s[1]]))]
    merges.sort(key=lambda merge: -merge[0])
    unknown = next(i for i in range(len(pieces)) if processor.is_unknown(i))
    pathlib.Path(path).write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"},
                                                           {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
        "pre_tokenizer": None, "post_processor": None,
        "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
                                                     {"type": "ByteFallback"}, {"type": "Fuse"},
                                                     {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        "model": {"type": "BPE", "dropout": None, "unk_token": pieces[unknown], "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": True, "byte_fallback": True, "vocab": ids,
                  "merges": [f"{left} {right}" for _, left, right in merges]}}, ensure_ascii=False))


def make_encoder(peer, model, threads):
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
        return lambda docs: encoding.encode_ordinary_batch(docs, num_threads=threads), same, tiktoken.__version__
    if peer == "sentencepiece":
        import sentencepiece
        processor = sentencepiece.SentencePieceProcessor(model_file=model)
        return lambda docs: processor.encode(docs, num_threads=threads), same, sentencepiece.__version__
    from importlib.metadata import version
    if peer.startswith("gigatoken"):
        import gigatoken
        load = gigatoken.Tokenizer.from_sentencepiece if model.endswith(".model") else gigatoken.Tokenizer
        tokenizer = load(model)

        def lists(result):
            ids, offsets = result.layout.content.data, result.layout.offsets.data
            return (ids[int(a):int(b)] for a, b in zip(offsets, offsets[1:]))
        return lambda docs: tokenizer.encode_batch(docs, parallel=threads > 1), lists, version("gigatoken")
    import fastokens
    import numpy
    tokenizer = fastokens.Tokenizer.from_file(model)

    def split(result):
        ids, offsets = numpy.frombuffer(result[0], "<u4"), numpy.frombuffer(result[1], "<u8")
        return (ids[int(a):int(b)] for a, b in zip(offsets, offsets[1:]))
    return lambda docs: tokenizer.encode_batch_flat(docs), split, version(peer)


def run_peer(peer, model, documents_path, passes, threads):
    documents = read_documents(documents_path)
    begin = time.process_time()
    encode, lists, version = make_encoder(peer, model, threads)
    list(lists(encode(["a"])))  # what the library imports or builds at its first call
    report = {"load_s": time.process_time() - begin, "version": version, "documents": len(documents),
              "bytes": sum(len(text.encode()) for text in documents), "cpu_s": [], "wall_s": []}
    for turn in range(passes):
        begin, wall_begin = time.process_time(), time.monotonic()
        result = encode(documents)
        report["cpu_s"].append(time.process_time() - begin)
        report["wall_s"].append(time.monotonic() - wall_begin)
        if turn == 0 and threads == 1:
            report["tokens"], report["sha256"] = digest(lists(result))
        del result
    print(json.dumps(report))


def run_spm_encode(program, model, documents_path, size):
    """Lines in, a line of ids out, the program's own loading included."""
    with tempfile.TemporaryFile() as lines:
        lines.write(pathlib.Path(documents_path).read_bytes().replace(b"\0", b"\n"))
        lines.seek(0)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            subprocess.run([program, f"--model={model}", "--output_format=id"], stdin=lines, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, check=True, timeout=LONGEST_S)
        except (subprocess.SubprocessError, OSError) as error:
            return {"failed": str(error)}
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"load_s": 0.0, "version": "", "bytes": size, "cpu_s": [seconds], "documents": 0, "tokens": 0, "sha256": None}


def measure(command, threads=1):
    environment = dict(os.environ, RAYON_NUM_THREADS=str(threads), OMP_NUM_THREADS=str(threads),
                       TOKENIZERS_PARALLELISM="false")
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=LONGEST_S)
    except subprocess.TimeoutExpired:
        return {"failed": f"nothing within {LONGEST_S} s"}
    if done.returncode != 0:
        return {"failed": (done.stderr.strip().splitlines() or ["?"])[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def tool_time(pretokenize, model, corpora):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.monotonic()
    subprocess.run([pretokenize, "--quiet", "--threads", "1", "--tokenizer", model, "-f", *corpora], check=True,
                   stdout=subprocess.DEVNULL)
    wall_s = time.monotonic() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall_s


def pipe_time(pretokenize, pack, model, corpora):
    """Wall time of pretokenize | pack > /dev/null."""
    begin = time.monotonic()
    first = subprocess.Popen([pretokenize, "--quiet", "--threads", "1", "--tokenizer", model, *corpora], stdout=subprocess.PIPE)
    subprocess.run([pack, "--quiet", "--chunk", "32768", "-f"], stdin=first.stdout, stdout=subprocess.DEVNULL, check=True)
    first.stdout.close()
    assert first.wait() == 0
    return time.monotonic() - begin


def profile(pretokenize, model, corpus, folder):
    """Share of the samples of one run of pretokenize, by group; None without perf."""
    data = f"{folder}/perf.data"
    try:
        subprocess.run(["perf", "record", "-q", "-F", "4000", "-o", data, pretokenize, "--quiet", "--threads", "1", "--tokenizer",
                        model, "-f", corpus], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        report = subprocess.run(["perf", "report", "-i", data, "--no-children", "--sort", "dso,symbol", "--stdio", "-g", "none",
                                 "-F", "overhead,dso,symbol", "--percent-limit", "0"], check=True, capture_output=True, text=True)
    except (subprocess.SubprocessError, OSError):
        return None
    shares = {}
    for line in report.stdout.splitlines():
        share = re.match(r"\s*([0-9.]+)%\s+(.*)", line)
        if share is None:
            continue
        group = next((name for name, pattern in GROUPS if re.search(pattern, share[2])), "other")
        shares[group] = shares.get(group, 0) + float(share[1])
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def summarize(results, sizes):
    rows = []
    for (model, corpus, name), reports in results.items():
        if "failed" in reports[0]:
            rows.append({"model": model, "corpus": corpus, "contestant": name, "failed": reports[0]["failed"]})
            continue
        reports = [report for report in reports if "failed" not in report]
        reference = results[(model, corpus, next(iter(PEERS[model])))][0]
        size = sizes[corpus]
        cold = [size / report["cpu_s"][0] for report in reports]
        warm = [size / min(report["cpu_s"][1:]) for report in reports if len(report["cpu_s"]) > 1]
        rows.append({
            "model": model, "corpus": corpus, "contestant": name, "version": reports[0].get("version"), "runs": len(reports),
            "cold_mb_per_cpu_s": {"best": max(cold), "median": statistics.median(cold)},
            "warm_mb_per_cpu_s": {"best": max(warm), "median": statistics.median(warm)} if warm else None,
            "load_s": min(report["load_s"] for report in reports), "documents": reports[0]["documents"],
            "tokens": reports[0]["tokens"], "sha256": reports[0]["sha256"],
            "same_ids": None if reports[0]["sha256"] is None else all(r["sha256"] == reference.get("sha256") for r in reports)})
    return rows


def summarize_threads(results, sizes):
    """The first pass is cold; the last of several is warm."""
    rows = []
    for (model, corpus, name), pairs in results.items():
        pairs = [pair for pair in pairs if "failed" not in pair[0] and "failed" not in pair[1]]
        for turn in (0, -1) if pairs and len(pairs[0][1]["wall_s"]) > 1 else (0,) if pairs else ():
            one_s, two_s = (min(pair[i]["wall_s"][turn] for pair in pairs) for i in (0, 1))
            spin = max(pair[2] for pair in pairs)
            rows.append({"model": model, "corpus": corpus, "contestant": name, "rounds": len(pairs), "pass": "warm" if turn else "cold",
                         "one_thread_mb_per_s": sizes[corpus] / one_s, "two_threads_mb_per_s": sizes[corpus] / two_s,
                         "ratio": one_s / two_s, "spin_ratio": spin, "scaling": 2 * one_s / two_s / spin,
                         "scaling_by_cpu": 2 * min(p[0]["cpu_s"][turn] for p in pairs) / min(p[1]["cpu_s"][turn] for p in pairs)})
    return rows


def write_markdown(path, summary):
    def number(value):
        return "" if value is None else f"{value['best']:.1f} ({value['median']:.1f})"
    load = summary["load_1min"]
    lines = [f"# Tokenizers side by side, {summary['date']}", "",
             f"{summary['cpu']}, {summary['processors']} processors, 1-minute load {load[0]:.1f} to {load[1]:.1f}, best of up to "
             f"{summary['rounds']} interleaved rounds (median in brackets), made by `scripts/compare/tokenize.sh` in "
             f"{summary['wall_s'] / 60:.1f} minutes. MB of text for a CPU second, one thread; what is timed is said in "
             "tokenize_side_by_side.py.", ""]
    for model, peers in PEERS.items():
        lines += [f"## {model}", "", f"| corpus | tokenizer | cold | warm | load s | tokens | ids as {next(iter(peers))} |",
                  "|---|---|---:|---:|---:|---:|---|"]
        for row in (r for r in summary["encoders"] if r["model"] == model):
            name = row["contestant"] + (f" {row['version']}" if row.get("version") else "")
            if "failed" in row:
                lines.append(f"| {row['corpus']} | {name} | failed: {row['failed']} | | | | |")
                continue
            same = {True: "same", False: "DIFFERENT", None: "not comparable"}[row["same_ids"]]
            lines.append(f"| {row['corpus']} | {name} | {number(row['cold_mb_per_cpu_s'])} | {number(row['warm_mb_per_cpu_s'])} | "
                         f"{row['load_s']:.3f} | {row['tokens']:,} | {same} |")
        lines += [f"| {t['corpus']} | pretokenize, the whole tool | {number(t['mb_per_cpu_s'])} | | | | |"
                  for t in summary["pretokenize"] if t["model"] == model]
        lines.append("")
    lines += ["## Two threads, MB of text a second", "",
              "| model | corpus | tokenizer | pass | 1 thread | 2 threads | ratio | spin loop's ratio | scaling of 2 | by CPU time |",
              "|---|---|---|---|---:|---:|---:|---:|---:|---:|"]
    lines += [f"| {t['model']} | {t['corpus']} | {t['contestant']} | {t['pass']} | {t['one_thread_mb_per_s']:.1f} | {t['two_threads_mb_per_s']:.1f} | "
              f"{t['ratio']:.2f} | {t['spin_ratio']:.2f} | {t['scaling']:.2f} | {t['scaling_by_cpu']:.2f} |" for t in summary["threads"]]
    lines += ["", "## pretokenize --threads 1 | pack, wall time", "",
              "| model | corpus | read so often | pretokenize > /dev/null, s | with pack > /dev/null, s | share of the speed kept |",
              "|---|---|---:|---:|---:|---:|"]
    lines += [f"| {t['model']} | {t['corpus']} | {t['times']} | {t['alone_s']:.2f} | {t['with_pack_s']:.2f} | {t['share']:.2f} |" for t in summary["pipes"]]
    if summary["profiles"]:
        groups = sorted({group for p in summary["profiles"] for group in p["shares"]},
                        key=lambda g: -max(p["shares"].get(g, 0) for p in summary["profiles"]))
        lines += ["", "## Where pretokenize's time goes, cold, percent of the samples of perf", "",
                  "| | " + " | ".join(f"{p['model']}, {p['corpus']}" for p in summary["profiles"]) + " |",
                  "|---|" + "---:|" * len(summary["profiles"])]
        lines += [f"| {group} | " + " | ".join(f"{p['shares'].get(group, 0):.1f}" for p in summary["profiles"]) + " |" for group in groups]
    pathlib.Path(path).write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser()
    for name in ("--data", "--encode-speed", "--pretokenize", "--pack", "--out", "--spm-encode"):
        parser.add_argument(name)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peer", nargs=5)
    options = parser.parse_args()
    if options.peer:
        peer, model, documents, passes, threads = options.peer
        return run_peer(peer, model, documents, int(passes), int(threads))

    started = time.monotonic()
    data = pathlib.Path(options.data)
    load = [os.getloadavg()[0]]
    sizes, results, threads, tool, pipes, profiles = {}, {}, {}, {}, {}, []
    with tempfile.TemporaryDirectory() as folder:
        for corpus in CORPORA:
            text = subprocess.run(["zstd", "-dcq", data / f"bench/{corpus}.jsonl.zst"], capture_output=True, check=True)
            texts = [json.loads(line)["text"] for line in text.stdout.splitlines()]
            assert not any("\0" in document for document in texts)
            sizes[corpus] = sum(len(document.encode()) for document in texts) / 1e6
            with open(f"{folder}/{corpus}", "wb") as file:
                file.write("".join(document + "\0" for document in texts).encode())
        converted = f"{folder}/mistral-v1.tokenizer.json"
        tokenizer_json_of(str(data / "tokenizers" / FILES["mistral-v1"]), converted)

        def peer_command(peer, model_path, corpus, passes, count):
            converts = model_path.endswith(".model") and peer not in ("sentencepiece", "gigatoken, .model")
            return [sys.executable, __file__, "--peer", peer, converted if converts else model_path, f"{folder}/{corpus}",
                    str(passes), str(count)]

        for turn in range(options.rounds):
            for model, peers in PEERS.items():
                model_path = str(data / "tokenizers" / FILES[model])
                for corpus in CORPORA:
                    documents, packed = f"{folder}/{corpus}", str(data / f"bench/{corpus}.jsonl.zst")

                    def ours(count):
                        return measure([options.encode_speed, model_path, documents, "3", str(count)], count)
                    key = (model, corpus, "trainwright")
                    results.setdefault(key, []).append(measure([options.encode_speed, model_path, documents, "2"]))
                    two = ours(2)
                    threads.setdefault(key, []).append((ours(1), two, two.get("spin_scaling", 0)))
                    for peer, (passes, every_round) in peers.items():
                        if turn > 0 and not every_round:
                            continue
                        if peer == "spm_encode":
                            report = run_spm_encode(options.spm_encode or "spm_encode", model_path, documents, sizes[corpus])
                        else:
                            report = measure(peer_command(peer, model_path, corpus, passes, 1))
                        results.setdefault((model, corpus, peer), []).append(report)
                        if peer in THREADED:
                            pair = measure(peer_command(peer, model_path, corpus, 1, 2), 2)
                            threads.setdefault((model, corpus, peer), []).append((report, pair, two.get("spin_scaling", 0)))
                        load.append(os.getloadavg()[0])
                    for times in PIPE_TIMES:
                        corpora = [packed] * times
                        cpu_s, wall_s = tool_time(options.pretokenize, model_path, corpora)
                        if times == 1:
                            tool.setdefault((model, corpus), []).append(cpu_s)
                        pipes.setdefault((model, corpus, times), []).append(
                            (wall_s, pipe_time(options.pretokenize, options.pack, model_path, corpora)))
                    if turn == 0:
                        shares = profile(options.pretokenize, model_path, packed, folder)
                        if shares:
                            profiles.append({"model": model, "corpus": corpus, "shares": shares})
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    summary = {
        "schema": "trainwright.compare.tokenize/3", "date": datetime.date.today().isoformat(), "cpu": cpu,
        "processors": os.cpu_count(), "python": platform.python_version(), "rounds": options.rounds,
        "wall_s": time.monotonic() - started, "load_1min": [min(load), max(load)], "encoders": summarize(results, sizes),
        "threads": summarize_threads(threads, sizes),
        "pretokenize": [{"model": m, "corpus": c, "mb_per_cpu_s": {"best": sizes[c] / min(s), "median": sizes[c] / statistics.median(s)}}
                        for (m, c), s in tool.items()],
        "pipes": [{"model": m, "corpus": c, "times": t, "alone_s": min(a for a, _ in pairs), "with_pack_s": min(p for _, p in pairs),
                   "share": min(a for a, _ in pairs) / min(p for _, p in pairs)} for (m, c, t), pairs in pipes.items()],
        "profiles": profiles}
    pathlib.Path(options.out + ".json").write_text(json.dumps(summary, indent=1) + "\n")
    write_markdown(options.out + ".md", summary)


main()
