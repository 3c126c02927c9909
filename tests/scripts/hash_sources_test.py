#!/usr/bin/env python3
"""cmake/HashSources.cmake writes another hash where a source is another, and the same where none is.

usage: hash_sources_test.py SOURCE_DIR CMAKE
"""
import pathlib
import re
import subprocess
import sys
import tempfile

script, cmake = pathlib.Path(sys.argv[1]).resolve() / "cmake/HashSources.cmake", sys.argv[2]


def hash_of(folder, inputs):
    output = folder / "out.cc"
    subprocess.run([cmake, f"-DINPUTS={'|'.join(map(str, inputs))}", f"-DOUTPUT={output}", "-DNAME=kHash", "-DHEADER=a/b.h",
                    "-P", script], check=True, timeout=60)
    found = re.fullmatch(r'// Written by the build.\n#include "a/b.h"\n\nnamespace trainwright \{\n'
                         r'constinit const std::string_view kHash = "([0-9a-f]{16})";\n\}  // namespace trainwright\n',
                         output.read_text())
    assert found, output.read_text()
    return found[1]


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    inputs = [folder / "a.cc", folder / "b.h"]
    inputs[0].write_text("int a();\n")
    inputs[1].write_text("int b();\n")
    first = hash_of(folder, inputs)
    assert hash_of(folder, inputs) == first
    inputs[1].write_text("int b(int);\n")
    assert hash_of(folder, inputs) != first
