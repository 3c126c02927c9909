#!/usr/bin/env python3
"""Reads the same tokens in shuffled order with several loaders; writes OUT.json and OUT.md.

usage: loader_side_by_side.py --work DIR --loader-speed PROGRAM [--rounds N] [--cpus LIST] [--tokens N] OUT

DIR holds shards-2048/ and shards-32768/ (pack --mode concat) and chunks.jsonl, the first as pack --cat prints them. A
contestant runs in a process of its own, by the protocol of protocol.py, on files in the page cache, reads the data once
uncounted (MDS with zstd unpacks its files then), and then the given number of tokens. CPU seconds are those of the whole process, user and system, all
threads, while it reads; imports, opening and writing the data are apart.

trainwright makes micro-batches of 8 samples of up to 2048 tokens: tokens, positions and labels as int64, cut at document
boundaries, checksums verified (tests/loading/loader_speed_main.cc; one worker thread). The peers know no documents: MDS and
litData hand out samples of 2048 ids (uint16 arrays, tensors) without labels, nanoGPT's get_batch, written here after its
description, makes x and y of 8 x 2048 int64 at random offsets. MDS and litData import packages for clouds and images that
this use of them never calls; those that are missing are replaced by empty stand-ins.
"""
import argparse
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import sys
import types

import protocol
from protocol import Comparison, Contestant, Sample
from train_runs import version_of

LENGTH, BATCH = 2048, 8
LONGEST_S = 300
# Shards, workers, blocks, MiB of cache.
OURS = {"trainwright, chunks of 32,768 (pack's default)": ("shards-32768", 1, 1, 0),
        "trainwright, chunks of 2,048, --shuffle-block 16": ("shards-2048", 1, 16, 0),
        "trainwright, chunks of 2,048, --data-cache 64MiB": ("shards-2048", 1, 1, 64),
        "trainwright, chunks of 2,048, nothing kept": ("shards-2048", 1, 1, 0)}
PEERS = ["MDS raw", "MDS zstd:3, xxh64", "litData raw", "nanoGPT get_batch"]


class StandIn(types.ModuleType):
    """A package that is imported and never used."""
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__init__": lambda self, *_, **__: None, "__class_getitem__": lambda *_: None})


class StandInFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds, last of all, what is not installed."""
    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.split(".")[0] in self.packages else None

    def create_module(self, spec):
        return StandIn(spec.name)

    def exec_module(self, module):
        pass

    packages = {"catalogue", "boto3", "botocore", "PIL", "torchvision", "transformers", "oci", "google", "paramiko", "azure",
                "torchaudio", "huggingface_hub", "databricks", "pyspark", "obstore", "lightning_sdk", "fsspec", "snappy"}


def missing_only(finder):
    """Stand-ins take part only where the real package is absent."""
    installed = set()
    for name in list(finder.packages):
        try:
            if importlib.util.find_spec(name) is not None:
                installed.add(name)
        except (ImportError, ValueError):
            pass
    finder.packages = finder.packages - installed
    sys.meta_path.append(finder)


def read_tokens(work):
    import numpy
    path = work / "tokens.npy"
    if not path.exists():
        with open(work / "chunks.jsonl", encoding="utf-8") as lines:
            numpy.save(path, numpy.array([json.loads(line)["ids"] for line in lines], dtype=numpy.uint16))
    return numpy.load(path)


def make_mds(work, name, **options):
    from streaming import MDSWriter
    folder = work / name
    if not folder.exists():
        with MDSWriter(out=str(folder), columns={"tokens": f"ndarray:uint16:{LENGTH}"}, **options) as writer:
            for row in read_tokens(work):
                writer.write({"tokens": row})
    return folder


def mds_samples(work, name, validate=None, **options):
    from streaming import StreamingDataset
    folder = make_mds(work, name, **options)
    data = StreamingDataset(local=str(folder), shuffle=True, shuffle_seed=1, batch_size=BATCH, validate_hash=validate)
    while True:
        for sample in data:
            yield len(sample["tokens"])


def litdata_samples(work):
    import torch
    from litdata import StreamingDataset
    from litdata.streaming import Cache
    from litdata.streaming.item_loader import TokensLoader
    folder = work / "litdata"
    if not folder.exists():
        cache = Cache(str(folder), chunk_size=LENGTH * 1024, item_loader=TokensLoader(block_size=LENGTH))
        for number, row in enumerate(read_tokens(work)):
            cache[number] = torch.from_numpy(row.astype("int32")).to(torch.uint16)
        cache.done()
        cache.merge()
    data = StreamingDataset(str(folder), shuffle=True, seed=1, item_loader=TokensLoader(block_size=LENGTH))
    while True:
        for sample in data:
            yield len(sample)


def nanogpt_samples(work):
    import numpy
    import torch
    path = work / "train.bin"
    if not path.exists():
        read_tokens(work).tofile(path)
    generator = torch.Generator().manual_seed(1)
    while True:
        data = numpy.memmap(path, dtype=numpy.uint16, mode="r")  # anew for each batch, against its leak
        starts = torch.randint(len(data) - LENGTH, (BATCH,), generator=generator)
        x = torch.stack([torch.from_numpy(data[i:i + LENGTH].astype(numpy.int64)) for i in starts])
        y = torch.stack([torch.from_numpy(data[i + 1:i + 1 + LENGTH].astype(numpy.int64)) for i in starts])
        assert x.shape == y.shape
        yield x.numel()


def run_peer(name, work, tokens):
    """One measurement, in this process."""
    missing_only(StandInFinder())
    import torch
    torch.set_num_threads(1)
    samples = {"MDS raw": lambda: mds_samples(work, "mds"),
               "MDS zstd:3, xxh64": lambda: mds_samples(work, "mds-zstd", "xxh64", compression="zstd:3", hashes=["xxh64"]),
               "litData raw": lambda: litdata_samples(work),
               "nanoGPT get_batch": lambda: nanogpt_samples(work)}[name]()

    def read(most):
        done = 0
        while done < most:
            done += next(samples)
        return done
    read(min(tokens, read_tokens(work).size))
    done, took = protocol.timed(lambda: read(tokens))
    print(json.dumps({"tokens": done, **took}), flush=True)
    os._exit(0)  # some leave threads and shared memory to wait for


def contestant(name, command, peer=None):
    def measure():
        environment = dict(os.environ, OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")
        told = json.loads(protocol.run_command(command, environment=environment, timeout_s=LONGEST_S).stdout.splitlines()[-1])
        return Sample.of(told["tokens"] / 1e6, told)
    return Contestant(name, measure, peer)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--loader-speed")
    parser.add_argument("--tokens", type=int, default=20_000_000)
    parser.add_argument("--peer")
    protocol.add_options(parser)
    parser.add_argument("out", nargs="?")
    options = parser.parse_args()
    if options.peer:
        run_peer(options.peer, options.work, options.tokens)
    contestants = [contestant(name, [options.loader_speed, options.work / shards, LENGTH, BATCH, options.tokens, *numbers],
                               "trainwright") for name, (shards, *numbers) in OURS.items()]
    contestants += [contestant(name, [sys.executable, __file__, "--work", options.work, "--tokens", options.tokens, "--peer", name])
                    for name in PEERS]
    read_tokens(options.work)
    versions = ", ".join(map(version_of, ("mosaicml-streaming", "litdata", "torch", "numpy")))
    record = protocol.Record(options.out, "Loaders side by side", "scripts/compare/loader.sh", notes=(
        f"The English sample, Mistral v1, samples of {LENGTH} tokens in shuffled order. {versions}. What is timed is said in "
        "loader_side_by_side.py."))
    record.run(Comparison("loaders", "million tokens", contestants, **protocol.how(options),
                          settings={"tokens": options.tokens}))


if __name__ == "__main__":
    main()
