#!/usr/bin/env python3
"""What the CUDA plugins export and which libraries they name, as the loader will see them.

usage: symbols_test.py FOLDER

A plugin exports its entries alone of what is its own, names no folder of the build machine, and needs of CUDA's libraries only
what is in the process before it: the kernels libc10_cuda, which loads without a driver and without cuBLAS, cuDNN and the like,
and CUPTI, which libtorch_cpu needs.
"""
import pathlib
import re
import subprocess
import sys

# The last entry of the kernels is there where the toolkit has CUPTI.
ENTRIES = {"libtrainwright_cuda.so": ["trainwright_cuda_plugin", "trainwright_device_graph", "trainwright_gpu_activity"],
           "libtrainwright_nccl.so": ["trainwright_nccl_group"]}
CUDA_LIBRARIES = {"libtrainwright_cuda.so": {"libc10_cuda.so", "libcudart.so.13", "libcupti.so.13"},
                  "libtrainwright_nccl.so": {"libc10_cuda.so", "libcudart.so.13", "libtorch_cuda.so"}}


def output(*command):
    return subprocess.run(command, check=True, text=True, capture_output=True).stdout


for name, entries in ENTRIES.items():
    library = pathlib.Path(sys.argv[1]) / name
    symbols = re.findall(r" ([A-Za-z]) (\S+)$", output("nm", "-D", "--defined-only", library), re.MULTILINE)
    exported = [symbol for kind, symbol in symbols if kind not in "WVu"]  # torch's inline functions are weak
    assert exported in (entries, entries[:2]), f"{name} exports {exported}"
    own = [symbol for kind, symbol in symbols if kind in "WVu" and "trainwright" in symbol]
    assert not own, f"{name} exports {own}"
    dynamic = output("readelf", "-d", library)
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))
    of_cuda = {other for other in needed if re.search("cu|nccl|nv", other)}
    assert of_cuda <= CUDA_LIBRARIES[name], f"{name} needs {sorted(of_cuda)}"
    assert not re.search(r"\((RPATH|RUNPATH)\)", dynamic), f"{name} has a search path of its own"
    print(f"{name} exports", *exported, "and needs", ", ".join(sorted(needed)))
