#!/usr/bin/env python3
"""Ratio and speed of lib/codec and of its peers on the files that codec.sh made; writes OUT.json and OUT.md.

usage: codec.py --data DIR --bench CODEC_BENCH [--rounds N] [--cpus LIST] [--max-mib N] [--files LIST] OUT

Every contestant is one thread, timed by the protocol of protocol.py, the peers in this process. Every output is decoded and
compared. MB = 1e6 bytes of input. In a round each is repeated for a third of a second of CPU time, as a moment that another
process takes would mark a shorter one. The first repetition of ours touches the pages and is not timed; peers run once before
the first round. What two threads of ours gain is divided by what a spin loop gains.
"""
import argparse
import json
import pathlib
import struct

import blosc2
import numpy as np
import openzl.ext as zl
import protocol
import torch
import zipnn
import zstandard
from pcodec import ChunkConfig, standalone
from protocol import Comparison, Contestant, Sample

OURS = {"trainwright fast": ("fast", False), "trainwright default": ("default", True),
        "trainwright default, no matrices": ("default", False)}
LEAST_S = 0.33
THREADED = ("minilm.bf16", "v250.fp32")
SLOW = {"zstd -19": 4}  # contestants that get so many MiB, once


def round_to_bf16(words):
    """Nearest even, as torch does; the words are fp32 bit patterns."""
    return ((words.astype(np.uint64) + 0x7FFF + ((words >> 16) & 1)) >> 16).astype(np.uint16)


def read_safetensors(path):
    """[(name, shape, fp32 words)] in the order of the file, and the metadata."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    metadata = header.pop("__metadata__", {})
    tensors = []
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"][0]):
        if entry["dtype"] == "F32":
            begin, end = entry["data_offsets"]
            words = np.frombuffer(data, np.uint32, (end - begin) // 4, 8 + size + begin)
            tensors.append((name, entry["shape"], words))
    return tensors, metadata


def read_pickle(path):
    state = torch.load(path, map_location="cpu", weights_only=True)
    state = state.get("model_state", state)
    return [(name, list(t.shape), t.contiguous().float().numpy().reshape(-1).view(np.uint32))
            for name, t in state.items() if torch.is_tensor(t) and t.is_floating_point()]


def save(folder, name, words, parts, max_bytes, files):
    """Writes one contest file as fp32 or bf16, its matrices beside it. parts: [(first element, shape)]."""
    path = folder / name
    words = words[: max_bytes // words.itemsize]
    if not path.exists():
        path.write_bytes(words.tobytes())
    lines = []
    for first, shape in parts:
        if len(shape) < 2:
            continue
        columns = int(np.prod(shape[1:]))
        rows = min(shape[0], (len(words) - first) // columns)  # the file may be cut
        if rows > 0:
            lines.append(f"{first} {rows} {columns}\n")
    path.with_suffix(path.suffix + ".matrices").write_text("".join(lines))
    files.append(path)


def make_files(data, max_bytes):
    folder = data / f"files-{max_bytes >> 20}"
    folder.mkdir(exist_ok=True)
    files = []
    sources = [("minilm", read_safetensors(next(data.glob("wheels/**/model.safetensors")))[0]),
               ("crepe", read_pickle(next(data.glob("wheels/**/full.pth")))),
               ("resemblyzer", read_pickle(next(data.glob("wheels/**/pretrained.pt"))))]
    for name, tensors in sources:
        words = np.concatenate([words for _, _, words in tensors])
        ends = np.cumsum([len(words) for _, _, words in tensors])
        parts = [(int(end) - len(words), shape) for end, (_, shape, words) in zip(ends, tensors)]
        save(folder, f"{name}.bf16", round_to_bf16(words), parts, max_bytes, files)
        if name == "minilm":
            save(folder, f"{name}.fp32", words, parts, max_bytes, files)
    for steps in (12, 250):
        checkpoint = data / f"run-{steps}/checkpoints/step-{steps:08d}"
        weights, _ = read_safetensors(checkpoint / "model.safetensors")
        state, metadata = read_safetensors(checkpoint / "trainwright_state.safetensors")
        shapes = {name: shape for name, shape, _ in weights}
        layout = json.loads(metadata["layout"])
        parts = [(first, shapes[name]) for name, first, _ in layout]
        flat = np.zeros_like(state[0][2])
        by_name = {name: words for name, _, words in weights}
        for name, first, count in layout:
            flat[first : first + count] = by_name[name]
        save(folder, f"w{steps}.bf16", round_to_bf16(flat), parts, max_bytes, files)
        for name, _, words in state:
            short = {"exp_avg": "m", "exp_avg_sq": "v"}[name]
            save(folder, f"{short}{steps}.fp32", words, parts, max_bytes, files)
    return files


def planes(data, width):
    return [np.ascontiguousarray(p).tobytes() for p in np.frombuffer(data, np.uint8).reshape(-1, width).T]


class Zstd:
    def __init__(self, level, width=1):
        self.compressor = zstandard.ZstdCompressor(level=level)
        self.decompressor = zstandard.ZstdDecompressor()
        self.width = width

    def compress(self, data):
        return [self.compressor.compress(p) for p in (planes(data, self.width) if self.width > 1 else [data])]

    def decompress(self, coded):
        parts = [self.decompressor.decompress(p) for p in coded]
        if self.width == 1:
            return parts[0]
        return np.stack([np.frombuffer(p, np.uint8) for p in parts], axis=1).tobytes()


class ZipNN:
    def __init__(self, dtype):
        self.codec = zipnn.ZipNN(bytearray_dtype=dtype, input_format="byte", threads=1)

    def compress(self, data):
        return [self.codec.compress(data)]

    def decompress(self, coded):
        return self.codec.decompress(coded[0])


class OpenZL:
    """The graph of its float profiles: exponents by its entropy coder, the rest stored."""

    def __init__(self, width):
        compressor = zl.Compressor()
        split = zl.nodes.BFloat16Deconstruct() if width == 2 else zl.nodes.Float32Deconstruct()
        numbers = zl.nodes.ConvertSerialToNumLE16() if width == 2 else zl.nodes.ConvertSerialToNumLE32()
        entropy, store = zl.graphs.Entropy()(compressor), zl.graphs.Store()(compressor)
        compressor.select_starting_graph(numbers(compressor, split(compressor, sign_frac=store, exponent=entropy)))
        self.compressor = compressor

    def compress(self, data):
        context = zl.CCtx()
        context.ref_compressor(self.compressor)
        context.set_parameter(zl.CParam.FormatVersion, zl.MAX_FORMAT_VERSION)
        return [context.compress([zl.Input(zl.Type.Serial, data)])]

    def decompress(self, coded):
        return zl.DCtx().decompress(coded[0])[0].content.as_bytes()


class Pcodec:
    def __init__(self, width):
        self.dtype = np.uint16 if width == 2 else np.float32

    def compress(self, data):
        numbers = np.frombuffer(data, self.dtype)
        if width_of(self.dtype) == 2:  # the sign at the end, as otherwise its histogram has two halves
            numbers = (numbers << 1) | (numbers >> 15)
        return [standalone.simple_compress(numbers, ChunkConfig(compression_level=4))]

    def decompress(self, coded):
        numbers = standalone.simple_decompress(coded[0])
        if width_of(self.dtype) == 2:
            numbers = (numbers >> 1) | (numbers << 15)
        return numbers.tobytes()


def width_of(dtype):
    return np.dtype(dtype).itemsize


class Blosc2:
    def __init__(self, width):
        self.options = {"codec": blosc2.Codec.ZSTD, "clevel": 1, "filters": [blosc2.Filter.SHUFFLE],
                        "typesize": width, "nthreads": 1}

    def compress(self, data):
        return [blosc2.compress2(data, **self.options)]

    def decompress(self, coded):
        return blosc2.decompress2(coded[0], nthreads=1)


def contestants(width):
    return {"zstd -3": Zstd(3), "zstd -19": Zstd(19), "planes + zstd -1": Zstd(1, width),
            "planes + zstd -3": Zstd(3, width), "blosc2 shuffle + zstd 1": Blosc2(width), "pcodec 4": Pcodec(width),
            "OpenZL deconstruct + entropy": OpenZL(width), "ZipNN": ZipNN("bfloat16" if width == 2 else "float32")}


def repeated(prepare, work, megabytes):
    """(what `work` returned last, the Sample of all calls of it); `prepare` makes its argument anew for each, untimed."""
    cpu_s, wall_s, times, result = 0.0, 0.0, 0, None
    while cpu_s < LEAST_S:
        argument = prepare()
        result, took = protocol.timed(lambda: work(argument))
        cpu_s, wall_s, times = cpu_s + took["cpu_s"], wall_s + took["wall_s"], times + 1
    return result, Sample(megabytes * times, cpu_s, wall_s)


def peer_samples(codec, data):
    megabytes = len(data) / 1e6
    # ZipNN reorders the bytes of its input in place.
    coded, encoding = repeated(lambda: bytes(bytearray(data)), codec.compress, megabytes)
    decoded, decoding = repeated(lambda: coded, codec.decompress, megabytes)
    if bytes(decoded) != data:
        raise RuntimeError(f"{type(codec).__name__} did not give the data back")
    encoding.details["ratio"] = len(data) / sum(map(len, coded))
    return {"encode": encoding, "decode": decoding}


def our_samples(bench, path, level, matrices, threads=1, repetitions=None):
    """Of repetitions that take about as long as a peer's, at 1 GB/s."""
    repetitions = repetitions or 1 + max(2, round(LEAST_S * 1e9 / path.stat().st_size))
    dtype = "BF16" if path.suffix == ".bf16" else "F32"
    command = [bench, path, dtype, level, repetitions, threads, f"{path}.matrices" if matrices else "-"]
    run = json.loads(protocol.run_command(command).stdout)
    return {aspect: Sample(run["bytes"] / 1e6 * (repetitions - 1), sum(run[f"{aspect}_cpu_s"][1:]), sum(run[f"{aspect}_wall_s"][1:]),
                           {"ratio": run["bytes"] / run["coded_bytes"]}) for aspect in ("encode", "decode")}


def comparison_of(options, path):
    data, contestants_of = path.read_bytes(), []
    for name, (level, matrices) in OURS.items():
        contestants_of.append(Contestant(name, lambda level=level, matrices=matrices: our_samples(options.bench, path, level, matrices),
                                         peer="trainwright"))
    for name, codec in contestants(2 if path.suffix == ".bf16" else 4).items():
        part = data[:SLOW[name] << 20] if name in SLOW else data
        measure = lambda codec=codec, part=part: peer_samples(codec, part)  # noqa: E731: bound to this codec
        contestants_of.append(Contestant(name, measure, prepare=measure))
    return Comparison(path.name, "MB", contestants_of, **protocol.how(options), settings={"bytes": len(data)})


def two_threads(options, path):
    contestants_of = [Contestant("2 threads", lambda: our_samples(options.bench, path, "default", True, 2)),
                      Contestant("1 thread", lambda: our_samples(options.bench, path, "default", True, 1), threads=1)]
    return Comparison(f"{path.name}, two threads", "MB", contestants_of, threads=2, **protocol.how(options),
                      settings={"bytes": path.stat().st_size})


def ratio_of(results, name):
    return next(iter(results.samples(name, "encode").values()))["ratio"]


def ratios_text(record):
    """Markdown of how small each contestant makes each file."""
    found = [protocol.Results(state) for state in record.states if "two threads" not in state["name"]]
    lines = ["", "## Ratio", "", "The first 4 MiB of zstd -19.", ""]
    if not found:
        return ""
    names = found[0].contestants("encode")
    lines += ["| file | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    for results in found:
        known = results.contestants("encode")
        lines.append(f"| {results.state['name']} | " +
                     " | ".join(f"{ratio_of(results, name):.4f}" if name in known else "" for name in names) + " |")
    lines += [f"| {name}, level max | {ratio:.4f} |" + " |" * (len(names) - 1) for name, ratio in record.extra.get("max", {}).items()]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--bench", required=True)
    parser.add_argument("--max-mib", type=int, default=32)
    parser.add_argument("--files", default="", help="of minilm.bf16 and so on (default: all)")
    protocol.add_options(parser)
    parser.add_argument("out")
    options = parser.parse_args()
    wanted = options.files.split(",") if options.files else None
    files = [path for path in make_files(options.data, options.max_mib << 20) if wanted is None or path.name in wanted]
    record = protocol.Record(options.out, "The tensor codec beside its peers", "scripts/compare/codec.sh", notes=(
        f"zstd {'.'.join(map(str, zstandard.ZSTD_VERSION))}. What is timed is said in codec.py."))
    record.after = ratios_text
    for path in files:
        record.run(comparison_of(options, path))
        if path.name in THREADED:
            record.run(two_threads(options, path))
        if path.name in ("minilm.bf16", "w250.bf16"):
            record.extra.setdefault("max", {})[path.name] = our_samples(options.bench, path, "max", True, 1, 2)["encode"].details["ratio"]
    record.write()


if __name__ == "__main__":
    main()
