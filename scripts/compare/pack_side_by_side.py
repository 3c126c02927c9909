"""What scripts/compare/pack.sh measures.

Codings: the ids of a sample, in stored order, as other programs would lay them out before zstd: raw, byte planes, packed
bits, differences, LEB128 varints, ranks by frequency, each cut into frames of 32,768 tokens and compressed with the system's
libzstd, the one that `pack` uses, at levels 1, 3, 9 and 19 with their standard parameters and a checksum. Beside them the
frames of `pack --mode concat` with and without --remap: all of their bytes, segments included. Header, index and the table
of codes are left out there as the tables of ranks are here, and their size is given.

The ids are the English sample's with Mistral's tokenizer of 32,000 ids. For a vocabulary of more than 65,536 ids there is
no tokenizer at hand: ids are made from the same text by joining pairs of neighbours into new ids, most frequent pair first,
with no pair used twice, until there are 131,072 ids. That is one round of BPE over the tokens, not a real tokenizer.

Packing, timed by the protocol of protocol.py: lengths of the documents of the sample, and 200,000 lengths from a lognormal
distribution (6, 1.2), for best-fit decreasing in windows of 65,536; beside `packer_speed` (C++) a segment tree in Python as TRL has it, and a sorted list with bisect.

Threads: what two threads of `pack --level 9` gain over one, divided by what a spin loop gains.
"""
import argparse
import bisect
import ctypes
import json
import os
import subprocess
import tempfile

import numpy as np
import protocol
from protocol import Comparison, Contestant, Sample

PARTS = ("sizes", "packing", "threads")
# Documents that a round packs at least, the same ones again and again: ours in C++, the others in Python.
LEAST_DOCUMENTS, LEAST_DOCUMENTS_IN_PYTHON = 5_000_000, 200_000
FRAME = 32768
LEVELS = (1, 3, 9, 19)

zstd = ctypes.CDLL("libzstd.so.1")
zstd.ZSTD_createCCtx.restype = ctypes.c_void_p
zstd.ZSTD_freeCCtx.argtypes = [ctypes.c_void_p]
zstd.ZSTD_CCtx_setParameter.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
zstd.ZSTD_compressBound.restype = zstd.ZSTD_compress2.restype = ctypes.c_size_t
zstd.ZSTD_compressBound.argtypes = [ctypes.c_size_t]
zstd.ZSTD_compress2.argtypes = [ctypes.c_void_p] + [ctypes.c_char_p, ctypes.c_size_t] * 2
zstd.ZSTD_versionString.restype = ctypes.c_char_p


def compressed_bytes(frames, level):
    context = zstd.ZSTD_createCCtx()
    zstd.ZSTD_CCtx_setParameter(context, 100, level)
    zstd.ZSTD_CCtx_setParameter(context, 201, 1)
    total = 0
    for frame in frames:
        room = ctypes.create_string_buffer(zstd.ZSTD_compressBound(len(frame)))
        total += zstd.ZSTD_compress2(context, room, len(room), frame, len(frame))
    zstd.ZSTD_freeCCtx(context)
    return total


def u16(ids):
    return ids.astype("<u2").tobytes()


def u32(ids):
    return ids.astype("<u4").tobytes()


def planes(ids, width):
    return ids.astype("<u4").view(np.uint8).reshape(-1, 4)[:, :width].T.tobytes()


def packed_bits(ids, bits):
    return np.packbits(((ids[:, None] >> np.arange(bits)) & 1).astype(np.uint8), bitorder="little").tobytes()


def differences(ids, dtype):
    return np.diff(ids.astype(np.int64), prepend=0).astype(dtype).tobytes()


def varints(ids):
    out = np.zeros((len(ids), 3), np.uint8)
    used = np.stack([np.ones(len(ids), bool), ids >= 128, ids >= 16384], axis=1)
    for i in range(3):
        out[:, i] = (ids >> (7 * i)) & 127
        if i < 2:
            out[:, i] |= np.where(used[:, i + 1], 128, 0).astype(np.uint8)
    return out[used].tobytes()


def high_plane(ids):
    return u16(ids & 65535) + np.packbits((ids >> 16).astype(np.uint8), bitorder="little").tobytes()


def ranks(ids, vocab):
    order = np.argsort(-np.bincount(ids, minlength=vocab), kind="stable")
    rank = np.empty(vocab, np.uint32)
    rank[order] = np.arange(vocab)
    return rank[ids]


def codings(ids, vocab):
    by_rank = ranks(ids, vocab)
    if vocab <= 65536:
        return {
            "raw u16": (ids, u16),
            "byte planes": (ids, lambda x: planes(x, 2)),
            "15 bits packed": (ids, lambda x: packed_bits(x, 15)),
            "differences, u16": (ids, lambda x: differences(x, "<u2")),
            "varint": (ids, varints),
            "frequency rank, u16": (by_rank, u16),
            "frequency rank, varint": (by_rank, varints),
        }
    return {
        "raw u32": (ids, u32),
        "3 byte planes": (ids, lambda x: planes(x, 3)),
        "17 bits packed": (ids, lambda x: packed_bits(x, 17)),
        "differences, u32": (ids, lambda x: differences(x, "<u4")),
        "u16 + high-bit plane": (ids, high_plane),
        "frequency rank, u32": (by_rank, u32),
        "frequency rank, u16 + high-bit plane": (by_rank, high_plane),
        "frequency rank, varint": (by_rank, varints),
    }


def token_ids(pack, shards):
    """The ids of a set of shards and the lengths of its documents, through pack --cat --json."""
    ids, lengths = [], []
    cat = subprocess.Popen([pack, "--cat", "--json", shards], stdout=subprocess.PIPE)
    for line in cat.stdout:
        chunk = json.loads(line)
        padding = 0
        for segment in chunk["segments"]:
            if segment["padding"]:
                padding += segment["tokens"]
            elif segment["starts_mid_document"]:
                lengths[-1] += segment["tokens"]
            else:
                lengths.append(segment["tokens"])
        ids.append(np.array(chunk["ids"][: len(chunk["ids"]) - padding], np.uint32))
    assert cat.wait() == 0
    return np.concatenate(ids), lengths


def join_pairs(ids, old_vocab, vocab):
    """Ids of a larger vocabulary, as the comment at the top says."""
    pairs = ids[:-1].astype(np.uint64) * old_vocab + ids[1:]
    found, counts = np.unique(pairs, return_counts=True)
    chosen = np.sort(found[np.argsort(-counts, kind="stable")[: vocab - old_vocab]])
    at = np.searchsorted(chosen, pairs)
    joins = chosen[np.minimum(at, len(chosen) - 1)] == pairs
    out, i = [], 0
    joins, at, plain = joins.tolist() + [False], at.tolist() + [0], ids.tolist()
    while i < len(plain):
        if joins[i]:
            out.append(old_vocab + at[i])
            i += 2
        else:
            out.append(plain[i])
            i += 1
    return np.array(out, np.uint32)


def frames_of(tool, folder, source, level, extra, key):
    """Bits a token of one run of pack."""
    out = os.path.join(folder, "out.tws")
    summary = os.path.join(folder, "summary.json")
    subprocess.run([tool, "-q", "--mode", "concat", "--chunk", str(FRAME), "--threads", "1", "--level", str(level), *extra,
                    *source, "-o", out, "--summary", summary], check=True)
    with open(summary) as file:
        said = json.load(file)
    frames_bytes = said["bits_per_token"] * said["tokens"] / 8
    return {"coding": key, "level": level, "bits_per_token": said["bits_per_token"],
            "rest_bytes": round(said["size_bytes"] - frames_bytes)}


class SegmentTree:
    """As TRL's: the largest value below each node, and the smallest leaf that is large enough."""

    def __init__(self, largest):
        self.size = 1 << largest.bit_length()
        self.tree = [0] * (2 * self.size)

    def set(self, leaf, value):
        i = leaf + self.size
        self.tree[i] = value
        while i > 1:
            i >>= 1
            left, right = self.tree[2 * i], self.tree[2 * i + 1]
            self.tree[i] = left if left >= right else right

    def search(self, value):
        i = 1
        while i < self.size:
            i = 2 * i if self.tree[2 * i] >= value else 2 * i + 1
        return self.tree[i]


def segment_tree_bins(lengths, capacity):
    tree = SegmentTree(capacity)
    tree.set(capacity, capacity)
    rooms = {}
    bins = 0
    for length in sorted(lengths, reverse=True):
        room = tree.search(length)
        if room < capacity and rooms.get(room):
            bin_number = rooms[room].pop()
            if not rooms[room]:
                tree.set(room, 0)
        else:
            bin_number = bins
            bins += 1
        room -= length
        if room:
            rooms.setdefault(room, []).append(bin_number)
            tree.set(room, room)
    return bins


def bisect_bins(lengths, capacity):
    rooms, bins = [], 0
    for length in sorted(lengths, reverse=True):
        at = bisect.bisect_left(rooms, length)
        room = rooms.pop(at) if at < len(rooms) else capacity
        bins += room == capacity
        if room > length:
            bisect.insort(rooms, room - length)
    return bins


def packing(options, lengths, name, capacity, window):
    """Our packer and two in Python, on as many documents a second of processor as they can."""
    lengths = [min(int(length), capacity - 1) for length in lengths]
    text = "\n".join(map(str, lengths))

    def told(bins, **more):
        return {"bins": bins, "padding": 1 - sum(lengths) / (bins * capacity), **more}

    def ours():
        times = -(-LEAST_DOCUMENTS // len(lengths))
        found = json.loads(protocol.run_command([options.packer_speed, capacity, window, times], stdin=text).stdout)
        return Sample.of(len(lengths) * times / 1e6, found, **told(found["bins"]))

    def peer(pack):
        times = -(-LEAST_DOCUMENTS_IN_PYTHON // len(lengths))
        bins, took = protocol.timed(lambda: sum(pack(lengths[at:at + window], capacity) for _ in range(times)
                                                for at in range(0, len(lengths), window)))
        return Sample.of(len(lengths) * times / 1e6, took, **told(bins // times))

    contestants = [Contestant("trainwright", ours), Contestant("segment tree in Python", lambda: peer(segment_tree_bins)),
                   Contestant("sorted list and bisect in Python", lambda: peer(bisect_bins))]
    return Comparison(f"best fit, {name}, chunks of {capacity}", "million documents", contestants,
                      settings={"documents": len(lengths), "window": window}, **protocol.how(options))


def threads(options, pack, stream, folder):
    megabytes = os.path.getsize(stream) / 1e6

    def measure(count):
        out = os.path.join(folder, f"{count}.tws")
        return protocol.run_command([pack, "-q", "-f", "--level", 9, "--threads", count, stream, "-o", out]).sample(megabytes)

    contestants = [Contestant("pack --level 9, 2 threads", lambda: measure(2)),
                   Contestant("pack --level 9, 1 thread", lambda: measure(1), threads=1)]
    return Comparison("pack, two threads", "MB of tokens", contestants, threads=2, **protocol.how(options))


def sizes_of(options, folder, pack, stream, ids):
    """{set: its rows of bits a token}"""
    large = join_pairs(ids, 32000, 131072)
    raw, sizes = os.path.join(folder, "large.npz"), {}
    np.savez(raw, input_ids=large)
    sets = (("mistral-v1, 32,000 ids", ids, 32000, [stream]),
            ("made up, 131,072 ids", large, 131072, [raw, "--vocab", "131072"]))
    for name, values, vocab, source in sets:
        rows = []
        for key, (numbers, layout) in codings(values, vocab).items():
            frames = [layout(numbers[at : at + FRAME]) for at in range(0, len(numbers), FRAME)]
            rows += [{"coding": key, "level": level, "bits_per_token": 8 * compressed_bytes(frames, level) / len(numbers)}
                     for level in LEVELS]
        for level in LEVELS:
            rows.append(frames_of(pack, folder, source, level, [], "pack"))
            rows.append(frames_of(pack, folder, source, level, ["--remap"], "pack --remap"))
        sizes[name] = {"tokens": len(values), "rows": rows}
    return sizes


def sizes_text(record):
    lines = []
    for name, part in record.extra.get("sizes", {}).items():
        lines += ["", f"## Bits a token: {name}, {part['tokens']:,} tokens, frames of {FRAME:,}", "",
                  "| coding | level 1 | level 3 | level 9 | level 19 |", "|---|---:|---:|---:|---:|"]
        cells = {}
        for row in part["rows"]:
            cells.setdefault(row["coding"], {})[row["level"]] = row
        for coding, by_level in cells.items():
            lines.append(f"| {coding} | " + " | ".join(f"{by_level[level]['bits_per_token']:.3f}" for level in LEVELS) + " |")
        best = [min(by_level[level]["bits_per_token"] for coding, by_level in cells.items() if not coding.startswith("pack"))
                for level in LEVELS]
        ours = [cells["pack --remap"][level]["bits_per_token"] for level in LEVELS]
        lines += ["", "`pack --remap` against the best of the others at the same level: " +
                  ", ".join(f"{100 * (o / b - 1):+.1f} %" for o, b in zip(ours, best)) + ". Beside its frames `pack` writes "
                  f"{cells['pack'][3]['rest_bytes']:,} bytes (header, tokenizer, index), with `--remap` "
                  f"{cells['pack --remap'][3]['rest_bytes']:,}."]
    if "same_bytes" in record.extra:
        lines += ["", f"Bytes of one and of two threads: {'same' if record.extra['same_bytes'] else 'DIFFERENT'}."]
    if "bins" in record.extra:
        lines += ["", "Every packer fills the same number of chunks; left empty: " +
                  "; ".join(f"{name} {100 * padding:.4f} %" for name, padding in record.extra["bins"].items()) +
                  ". That is of windows on their own; `pack` also carries the emptiest chunks into the next window."]
    return "\n".join(lines) + "\n"


def compare_packing(options, record, lengths):
    synthetic = np.clip(np.random.default_rng(1).lognormal(6, 1.2, 200_000), 1, 32767)
    for capacity in (2048, 8192, 32768):
        for name, data in (("english sample", lengths), ("lognormal(6, 1.2)", synthetic)):
            results = record.run(packing(options, data, name, capacity, 65536))
            found = {(sample["bins"], sample["padding"]) for contestant in results.contestants("")
                     for sample in results.samples(contestant, "").values()}
            assert len(found) == 1, found
            record.extra.setdefault("bins", {})[results.state["name"]] = found.pop()[1]


def main():
    parser = argparse.ArgumentParser()
    for option in ("--data", "--bin", "--packer-speed"):
        parser.add_argument(option, required=True)
    parser.add_argument("--parts", type=lambda text: text.split(","), default=list(PARTS))
    protocol.add_options(parser)
    parser.add_argument("out")
    options = parser.parse_args()
    pack, pretokenize = os.path.join(options.bin, "pack"), os.path.join(options.bin, "pretokenize")
    record = protocol.Record(options.out, "Packing side by side", "scripts/compare/pack.sh", notes=(
        f"zstd {zstd.ZSTD_versionString().decode()}. What is measured is said in pack_side_by_side.py."))
    record.after = sizes_text
    with tempfile.TemporaryDirectory() as folder:
        stream = os.path.join(folder, "english.tokens")
        subprocess.run([pretokenize, "-q", "--tokenizer", os.path.join(options.data, "tokenizers/mistral-v1.model"), "--format",
                        "jsonl", os.path.join(options.data, "bench/english-32MB.jsonl.zst"), "-o", stream], check=True)
        shards = os.path.join(folder, "english.tws")
        subprocess.run([pack, "-q", "--mode", "concat", "--chunk", str(FRAME), stream, "-o", shards], check=True)
        ids, lengths = token_ids(pack, shards)
        if "packing" in options.parts:
            compare_packing(options, record, lengths)
        if "threads" in options.parts:
            record.run(threads(options, pack, stream, folder))
            with open(os.path.join(folder, "1.tws"), "rb") as one, open(os.path.join(folder, "2.tws"), "rb") as two:
                record.extra["same_bytes"] = one.read() == two.read()
        if "sizes" in options.parts and "sizes" not in record.extra:
            record.extra["sizes"] = sizes_of(options, folder, pack, stream, ids)
        record.write()


if __name__ == "__main__":
    main()
