#!/usr/bin/env python3
"""Every kernel of the CUDA plugin is there for each GPU that it serves: machine code and PTX, as the built library has them.

usage: architectures_test.py PLUGIN

Reads the section .nv_fatbin, which nvcc fills with one container a source file: what `cuobjdump --list-elf --list-ptx` lists,
where the toolkit has that program.
"""
import collections
import struct
import subprocess
import sys
import tempfile

MACHINE_CODE = {75, 80, 90}
PTX = {90}  # later GPUs compile it when they first see it
CONTAINER, KIND_PTX, KIND_ELF = 0xBA55ED50, 1, 2


def section(library):
    with tempfile.NamedTemporaryFile() as file:
        subprocess.run(["objcopy", "-O", "binary", "--only-section=.nv_fatbin", library, file.name], check=True)
        return file.read()


def containers(data):
    """The entries of each container: pairs of kind and compute capability, 75 for 7.5."""
    at = 0
    while (at := data.find(struct.pack("<I", CONTAINER), at)) >= 0:
        _, _, header_size, size = struct.unpack_from("<IHHQ", data, at)
        entry, end, found = at + header_size, at + header_size + size, []
        while entry < end:
            kind, _, entry_header_size, payload_size = struct.unpack_from("<HHIQ", data, entry)
            found.append((kind, struct.unpack_from("<I", data, entry + 28)[0]))
            entry += entry_header_size + payload_size
        yield found
        at = end


def main():
    counts = collections.Counter()
    all_containers = list(containers(section(sys.argv[1])))
    for number, entries in enumerate(all_containers):
        machine_code = {capability for kind, capability in entries if kind == KIND_ELF}
        ptx = {capability for kind, capability in entries if kind == KIND_PTX}
        assert machine_code == MACHINE_CODE, f"container {number}: machine code of {sorted(machine_code)}"
        assert ptx == PTX, f"container {number}: PTX of {sorted(ptx)}"
        counts.update(f"sm_{capability}" for capability in machine_code)
        counts.update(f"PTX {capability}" for capability in ptx)
    assert len(all_containers) >= 6, f"{len(all_containers)} containers"
    print(f"{len(all_containers)} source files:", ", ".join(f"{count} x {name}" for name, count in sorted(counts.items())))


main()
