#!/usr/bin/env python3
"""Ratio and speed of lib/codec and of its peers on the files that codec.sh made; prints Markdown.

usage: codec.py --data DIR --bench CODEC_BENCH [--rounds N] [--max-mib N]

Every contestant is one thread and timed by its process's CPU time (user and system). A round runs all contestants
once on a file; the best round counts, the median is beside it. Every output is decoded and compared. MB = 1e6 bytes
of input.
"""
import argparse
import json
import os
import pathlib
import statistics
import struct
import subprocess
import sys
import time

import blosc2
import numpy as np
import openzl.ext as zl
import torch
import zipnn
import zstandard
from pcodec import ChunkConfig, standalone

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


def cpu_time(function, argument):
    begin = time.process_time()
    result = function(argument)
    return time.process_time() - begin, result


def run_peer(codec, data, results):
    mutable = bytes(bytearray(data))  # ZipNN reorders the bytes of its input in place
    encode_s, coded = cpu_time(codec.compress, mutable)
    decode_s, decoded = cpu_time(codec.decompress, coded)
    if bytes(decoded) != data:
        raise RuntimeError(f"{type(codec).__name__} did not give the data back")
    results.setdefault("encode", []).append(encode_s)
    results.setdefault("decode", []).append(decode_s)
    results["bytes"], results["coded"] = len(data), sum(map(len, coded))


def run_ours(bench, path, level, matrices, threads=1):
    dtype = "BF16" if path.suffix == ".bf16" else "F32"
    command = [bench, path, dtype, level, "3", str(threads), matrices]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def speed(result, what):
    rates = [result["bytes"] / 1e6 / s for s in result[what]]
    return f"{max(rates):.0f} ({statistics.median(rates):.0f})"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--bench", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--max-mib", type=int, default=32)
    arguments = parser.parse_args()
    files = make_files(arguments.data, arguments.max_mib << 20)
    load = [os.getloadavg()[0]]
    summary = []
    print("Each cell: MB/s of the best round, in brackets of the median one.\n")
    for path in files:
        data = path.read_bytes()
        width = 2 if path.suffix == ".bf16" else 4
        results = {name: {} for name in contestants(width)}
        matrices = str(path) + ".matrices"
        ours = {"trainwright fast": ("fast", "-"), "trainwright default, no matrices": ("default", "-"),
                "trainwright default": ("default", matrices)}
        for name in ours:
            results[name] = {}
        for round_number in range(arguments.rounds):
            for name, codec in contestants(width).items():
                if name not in SLOW:
                    run_peer(codec, data, results[name])
                elif round_number == 0:
                    run_peer(codec, data[: SLOW[name] << 20], results[name])
            for name, (level, parts) in ours.items():
                run = run_ours(arguments.bench, path, level, parts)
                result = results[name]
                result["bytes"], result["coded"] = run["bytes"], run["coded_bytes"]
                # The first of the three repetitions touches the pages.
                result.setdefault("encode", []).extend(run["encode_cpu_s"][1:])
                result.setdefault("decode", []).extend(run["decode_cpu_s"][1:])
            load.append(os.getloadavg()[0])
        if path.name in ("minilm.bf16", "w250.bf16"):
            run = run_ours(arguments.bench, path, "max", matrices)
            results["trainwright max"] = {"bytes": run["bytes"], "coded": run["coded_bytes"],
                                          "encode": run["encode_cpu_s"], "decode": run["decode_cpu_s"]}
        print(f"### {path.name}, {len(data) / 1e6:.1f} MB\n")
        print("| codec | ratio | encode MB/s | decode MB/s |\n|---|---|---|---|")
        for name, result in results.items():
            note = f" (first {SLOW[name]} MiB)" if name in SLOW else ""
            print(f"| {name}{note} | {result['bytes'] / result['coded']:.4f} "
                  f"| {speed(result, 'encode')} | {speed(result, 'decode')} |")
        print()
        sys.stdout.flush()
        peer = results["ZipNN"]

        def against(name, what):
            return min(peer[what]) / min(results[name][what])

        def smaller(name):
            ratio = peer["coded"] / results[name]["coded"]
            return f"{100 * (ratio - 1):+.2f} %"

        summary.append(f"| {path.name} | {smaller('trainwright fast')} | {against('trainwright fast', 'encode'):.2f} "
                       f"| {against('trainwright fast', 'decode'):.2f} | {smaller('trainwright default')} "
                       f"| {against('trainwright default', 'encode'):.2f} "
                       f"| {against('trainwright default', 'decode'):.2f} |")
    print("### Against ZipNN: ratio, encoding and decoding speed\n")
    print("| file | fast: ratio | encode x | decode x | default: ratio | encode x | decode x |\n|---|---|---|---|---|---|---|")
    print("\n".join(summary))
    print("\n### Two threads, wall time, best of the rounds\n")
    print("| file | encode x | decode x | control: a loop without memory x | encode: CPU time x | decode: CPU time x |")
    print("|---|---|---|---|---|---|")
    for path in files:
        if path.name not in ("minilm.bf16", "v250.fp32"):
            continue
        times = {}
        for _ in range(max(3, arguments.rounds)):
            for threads in (1, 2):
                run = run_ours(arguments.bench, path, "default", str(path) + ".matrices", threads)
                for what in ("encode_wall_s", "decode_wall_s", "spin_wall_s", "encode_cpu_s", "decode_cpu_s"):
                    times.setdefault((what, threads), []).extend(run[what][1:])
        gains = [min(times[(what, 1)]) / min(times[(what, 2)])
                 for what in ("encode_wall_s", "decode_wall_s", "spin_wall_s")]
        costs = [min(times[(what, 2)]) / min(times[(what, 1)]) for what in ("encode_cpu_s", "decode_cpu_s")]
        print(f"| {path.name} | " + " | ".join(f"{x:.2f}" for x in gains + costs) + " |")
    print(f"\nLoad (1 minute): {min(load):.1f} to {max(load):.1f}, median {statistics.median(load):.1f}; "
          f"{os.cpu_count()} processors. "
          f"zstd {'.'.join(map(str, zstandard.ZSTD_VERSION))}, {arguments.rounds} rounds.")


if __name__ == "__main__":
    main()
