#!/usr/bin/env python3
"""Times tokenizers beside each other on real text; writes OUT.json and OUT.md.

usage: tokenize_side_by_side.py --data DIR --encode-speed PROGRAM --pretokenize PROGRAM --pack PROGRAM --spm-encode PROGRAM
                                [--rounds N] [--cpus LIST] [--parts LIST] [--models LIST] [--corpora LIST] [--megabytes N] OUT

--parts: of ids,encode,threads,pipe,profile (default: all). --megabytes: at most so much of a corpus.

A contestant runs in a process of its own, by the protocol of protocol.py, and encodes all documents of a corpus twice with
one tokenizer object, on one thread. The CPU time (user and system, of the whole process) of the first pass is "cold":
nothing is remembered from text seen before. The second pass is "warm". Documents are in memory before the clock starts,
loading the tokenizer and a first call with one letter are apart, and peers are called with all documents at once by the
function of theirs that makes the fewest Python objects. MB = 1e6 bytes of UTF-8. Peers below 20 MB/s, whose speed does not
depend on what they have seen, encode the first 4 MB. The ids of every contestant, of the whole corpus, are compared by
SHA-256 apart (part "ids"): the exit status is 1 where ours are not the reference's, or a peer's, whose difference is not known.

spm_encode reads lines: it gets the documents' lines, loses the newlines, and its ids cannot be compared. gigatoken,
fastokens and Hugging Face tokenizers get a tokenizer.json that is made here from the .model, by the rule of the
transformers package; "gigatoken, .model" reads the model itself.

Two threads: what they gain over one, cold and warm, divided by what a spin loop gains.

pretokenize is timed whole: JSON, zstd and writing to /dev/null included. With pack behind it, it reads a corpus once and
eight times over: pack writes when it has seen 2 Mi tokens, a fifth of a corpus. Both are MB for a second of wall time, not
divided by what a spin loop gains: pretokenize does the same work in both.
"""
import argparse
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import protocol
from protocol import Comparison, Contestant, ContestantFailed, Sample

PARTS = ("ids", "encode", "threads", "pipe", "profile")
SLOW_MEGABYTES = 4
PIPE_TIMES = (1, 8)
CORPORA = ["english-32MB", "code-16MB"]
LONGEST_S = 200
GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
# The first is the reference. Whether each remembers what it has seen and is fast enough for the whole corpus.
PEERS = {
    "gpt2": {"Hugging Face tokenizers": False, "tiktoken": False, "fastokens": True, "gigatoken": True},
    "mistral-v1": {"sentencepiece": False, "Hugging Face tokenizers": False, "fastokens": True, "gigatoken": True,
                   "gigatoken, .model": True, "spm_encode": False},
}
FILES = {"gpt2": "gpt2.tokenizer.json", "mistral-v1": "mistral-v1.model"}
THREADED = ["gigatoken", "sentencepiece"]  # peers that are timed on two threads, too
OURS = "trainwright"
# Peers that are known to give other ids: tiktoken cuts some code in another way; gigatoken, of a .model, takes "<s>" in a text
# for the mark.
KNOWN_TO_DIFFER = {("gpt2, code-16MB", "tiktoken"), *((f"mistral-v1, {corpus}", "gigatoken, .model") for corpus in CORPORA)}
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
        del result
    print(json.dumps(report))


def ids_of(peer, model, documents_path):
    """Prints (tokens, SHA-256) of a peer's ids."""
    encode, lists, _ = make_encoder(peer, model, 1)
    print(json.dumps(digest(lists(encode(read_documents(documents_path))))))


def report_of(command, threads=1):
    """The JSON object that a contestant prints last."""
    environment = dict(os.environ, RAYON_NUM_THREADS=str(threads), OMP_NUM_THREADS=str(threads), TOKENIZERS_PARALLELISM="false")
    done = protocol.run_command(command, environment=environment, timeout_s=LONGEST_S)
    return json.loads(done.stdout.splitlines()[-1])


def samples_of(report):
    """Of a report of passes: the first is cold, the last of several warm."""
    turns = {"cold": 0} | ({"warm": -1} if len(report["cpu_s"]) > 1 else {})
    return {aspect: Sample(report["bytes"] / 1e6, report["cpu_s"][turn], report["wall_s"][turn],
                           {"load_s": report.get("load_s"), "version": report.get("version")}) for aspect, turn in turns.items()}


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


class Contest:
    """One model on one corpus."""

    def __init__(self, options, folder, model, corpus, megabytes):
        self.options, self.model, self.corpus, self.megabytes = options, model, corpus, megabytes
        self.model_path = str(options.data / "tokenizers" / FILES[model])
        self.converted = f"{folder}/mistral-v1.tokenizer.json"
        self.documents, self.few = f"{folder}/{corpus}", f"{folder}/{corpus}.few"
        self.packed = f"{folder}/{corpus}.jsonl.zst"

    def compare(self, what, unit, contestants, **more):
        return Comparison(f"{self.model}, {self.corpus}{what}", unit, contestants,
                          settings={"megabytes": round(self.megabytes, 3)}, **protocol.how(self.options), **more)

    def ours(self, passes, threads):
        return samples_of(report_of([self.options.encode_speed, self.model_path, self.documents, str(passes), str(threads)], threads))

    def peer_command(self, peer, *more):
        converts = self.model_path.endswith(".model") and peer not in ("sentencepiece", "gigatoken, .model")
        return [sys.executable, __file__, *more, peer, self.converted if converts else self.model_path]

    def peer(self, peer, passes, threads):
        documents = self.documents if PEERS[self.model][peer] else self.few
        return samples_of(report_of([*self.peer_command(peer, "--peer"), documents, str(passes), str(threads)], threads))

    def spm_encode(self):
        """Lines in, a line of ids out, the program's own loading included."""
        lines = pathlib.Path(self.few).read_bytes().replace(b"\0", b"\n")
        done = protocol.run_command([self.options.spm_encode, f"--model={self.model_path}", "--output_format=id"], stdin=lines,
                                    timeout_s=LONGEST_S)
        return {"cold": done.sample(len(lines) / 1e6)}

    def encoders(self):
        def measure(peer):
            if peer == "spm_encode":
                return self.spm_encode
            return lambda: self.peer(peer, 2 if PEERS[self.model][peer] else 1, 1)
        contestants = [Contestant(peer, measure(peer)) for peer in PEERS[self.model]]
        return self.compare("", "MB of text", [Contestant(OURS, lambda: self.ours(2, 1)), *contestants])

    def threads(self):
        """What two threads gain: our third pass is the warm one."""
        contestants = [Contestant(f"{OURS}, 2 threads", lambda: self.ours(3, 2)),
                       Contestant(f"{OURS}, 1 thread", lambda: self.ours(3, 1), threads=1)]
        for peer in THREADED:
            if peer in PEERS[self.model]:
                contestants += [Contestant(f"{peer}, 2 threads", lambda peer=peer: self.peer(peer, 1, 2)),
                                Contestant(f"{peer}, 1 thread", lambda peer=peer: self.peer(peer, 1, 1), threads=1)]
        return self.compare(", two threads", "MB of text", contestants, threads=2)

    def tool_command(self, times):
        return [self.options.pretokenize, "--quiet", "--threads", "1", "--tokenizer", self.model_path, *[self.packed] * times]

    def tool(self, times):
        with open(os.devnull, "wb") as nowhere:
            return protocol.run_command([*self.tool_command(times), "-f"], stdout=nowhere).sample(self.megabytes * times)

    def pipe(self, times):
        """pretokenize | pack > /dev/null"""
        begin = time.monotonic()
        first = subprocess.Popen(self.tool_command(times), stdout=subprocess.PIPE)
        second = subprocess.Popen([self.options.pack, "--quiet", "--chunk", "32768", "-f"], stdin=first.stdout,
                                  stdout=subprocess.DEVNULL)
        first.stdout.close()
        used = [os.wait4(process.pid, 0) for process in (first, second)]
        first.returncode, second.returncode = (os.waitstatus_to_exitcode(status) for _, status, _ in used)
        if first.returncode or second.returncode:
            raise ContestantFailed("pretokenize | pack failed")
        return Sample(self.megabytes * times, sum(usage.ru_utime + usage.ru_stime for _, _, usage in used),
                      time.monotonic() - begin)

    def pipes(self, times):
        contestants = [Contestant("pretokenize into pack", lambda: self.pipe(times)),
                       Contestant("pretokenize > /dev/null", lambda: self.tool(times), threads=1)]
        return self.compare(f", {times} times into pack", "MB of text", contestants, threads=2, by_gain=False)

    def ids(self):
        """[(contestant, tokens, SHA-256 or why there is none)], the reference first."""
        own = report_of([self.options.encode_speed, self.model_path, self.documents, "1"])
        found = [(OURS, own["tokens"], own["sha256"])]
        for peer in PEERS[self.model]:
            if peer == "spm_encode":
                continue
            try:
                done = protocol.run_command([*self.peer_command(peer, "--ids"), self.documents], timeout_s=LONGEST_S)
                found.append((peer, *json.loads(done.stdout.splitlines()[-1])))
            except ContestantFailed as error:
                found.append((peer, 0, str(error)))
        return found


def write_corpora(options, folder):
    """{corpus: megabytes}; of each corpus a file of documents, one of its first documents, and one of JSON lines."""
    sizes = {}
    for corpus in options.corpora:
        text = subprocess.run(["zstd", "-dcq", options.data / f"bench/{corpus}.jsonl.zst"], capture_output=True, check=True)
        lines, kept, few, total = text.stdout.splitlines(), [], 0, 0
        for line in lines:
            document = json.loads(line)["text"].encode()
            assert b"\0" not in document
            if total + len(document) > options.megabytes * 1e6 and kept:
                break
            few += total < SLOW_MEGABYTES * 1e6
            total += len(document)
            kept.append(document)
        sizes[corpus] = total / 1e6
        for name, part in ((corpus, kept), (f"{corpus}.few", kept[:few])):
            pathlib.Path(folder, name).write_bytes(b"".join(document + b"\0" for document in part))
        subprocess.run(["zstd", "-q", "-o", f"{folder}/{corpus}.jsonl.zst"], input=b"\n".join(lines[:len(kept)]) + b"\n", check=True)
    return sizes


def differences(all_ids):
    """A line for each contestant whose ids of a whole corpus are not the reference's, the first behind ours."""
    lines = []
    for name, (own, reference, *peers) in all_ids.items():
        if not reference[1] or own[1:] != reference[1:]:
            lines.append(f"{name}: ours are {own[1]} tokens, {reference[0]}'s {reference[1]}, {reference[2]}")
        lines += [f"{name}: {peer} has {tokens} tokens, the reference {reference[1]}" for peer, tokens, sha in peers
                  if tokens and sha != reference[2] and (name, peer) not in KNOWN_TO_DIFFER]
    return lines


def extra_text(record):
    """Markdown of ids and profiles."""
    lines = []
    if record.extra.get("ids"):
        lines += ["", "## Ids of whole corpora", "", "| model, corpus | tokenizer | tokens | ids as the reference |", "|---|---|---:|---|"]
    for name, found in record.extra.get("ids", {}).items():
        for contestant, tokens, sha in found:
            lines.append(f"| {name} | {contestant} | {tokens:,} | {'same' if sha == found[1][2] else 'DIFFERENT' if tokens else sha} |")
    profiles = record.extra.get("profiles", {})
    if profiles:
        groups = sorted({group for shares in profiles.values() for group in shares},
                        key=lambda g: -max(shares.get(g, 0) for shares in profiles.values()))
        lines += ["", "## Where pretokenize's time goes, cold, percent of the samples of perf", "",
                  "| | " + " | ".join(profiles) + " |", "|---|" + "---:|" * len(profiles)]
        lines += [f"| {group} | " + " | ".join(f"{shares.get(group, 0):.1f}" for shares in profiles.values()) + " |" for group in groups]
    return "\n".join(lines) + "\n"


def run_contest(contest, parts, record, folder):
    if "encode" in parts:
        record.run(contest.encoders())
    if "threads" in parts:
        record.run(contest.threads())
    if "pipe" in parts:
        for times in PIPE_TIMES:
            record.run(contest.pipes(times))
    name = f"{contest.model}, {contest.corpus}"
    if "ids" in parts and name not in record.extra.setdefault("ids", {}):
        record.extra["ids"][name] = contest.ids()
    if "profile" in parts and name not in record.extra.setdefault("profiles", {}):
        if shares := profile(contest.options.pretokenize, contest.model_path, contest.packed, folder):
            record.extra["profiles"][name] = shares
    record.write()


def main():
    if sys.argv[1] == "--peer":
        peer, model, documents, passes, threads = sys.argv[2:]
        return run_peer(peer, model, documents, int(passes), int(threads))
    if sys.argv[1] == "--ids":
        return ids_of(*sys.argv[2:])
    parser = argparse.ArgumentParser()
    for name in ("--encode-speed", "--pretokenize", "--pack", "--spm-encode"):
        parser.add_argument(name, required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    for name, default in (("--parts", PARTS), ("--models", PEERS), ("--corpora", CORPORA)):
        parser.add_argument(name, type=lambda text: text.split(","), default=list(default))
    parser.add_argument("--megabytes", type=float, default=1000)
    protocol.add_options(parser)
    parser.add_argument("out")
    options = parser.parse_args()
    record = protocol.Record(options.out, "Tokenizers side by side", "scripts/compare/tokenize.sh",
                             notes="What is timed is said in tokenize_side_by_side.py.")
    record.after = extra_text
    with tempfile.TemporaryDirectory() as folder:
        sizes = write_corpora(options, folder)
        tokenizer_json_of(str(options.data / "tokenizers" / FILES["mistral-v1"]), f"{folder}/mistral-v1.tokenizer.json")
        for model in options.models:
            for corpus in options.corpora:
                run_contest(Contest(options, folder, model, corpus, sizes[corpus]), options.parts, record, folder)
    return protocol.exit_status(differences(record.extra.get("ids", {})))


if __name__ == "__main__":
    sys.exit(main())
