#!/usr/bin/env python3
"""Writes lib/jinja/text_tables.cc: what Python's str knows about code points, by the Python that runs this.

usage: make_text_tables.py > lib/jinja/text_tables.cc
"""
import sys
import unicodedata

POINTS = [point for point in range(0x110000) if not 0xD800 <= point < 0xE000]


def ranges_of(condition):
    ranges = []
    for point in POINTS:
        if condition(chr(point)):
            if ranges and ranges[-1][1] == point - 1:
                ranges[-1][1] = point
            else:
                ranges.append([point, point])
    return ranges


def print_array(head, entries, count):
    print(f"{head}[] = {{")
    line = "   "
    for entry in entries:
        if len(line) + len(entry) + 2 > 110:
            print(line)
            line = "   "
        line += f" {entry},"
    print(line)
    print(f"}};\nconst size_t {count} = {len(entries)};\n")


def print_ranges(name, condition):
    entries = [f"{{0x{first:x}, 0x{last:x}}}" for first, last in ranges_of(condition)]
    print_array(f"const CodeRange k{name}", entries, f"k{name}Count")


def print_mapping(name, mapped):
    """Runs of code points, next to each other or every second one, that move by the same number."""
    runs, specials = [], []
    for point in POINTS:
        text = mapped(chr(point))
        if text == chr(point):
            continue
        if len(text) > 1:
            escaped = "".join(f"\\x{byte:02x}" for byte in text.encode())
            specials.append(f'{{0x{point:x}, "{escaped}"}}')
            continue
        shift = ord(text) - point
        last = runs[-1] if runs else None
        if last and last[3] == shift and point - last[1] in (1, 2) and last[2] in (0, point - last[1]):
            last[1:3] = [point, point - last[1]]
        else:
            runs.append([point, point, 0, shift])
    entries = [f"{{0x{first:x}, 0x{last:x}, {stride or 1}, {shift}}}" for first, last, stride, shift in runs]
    print_array(f"const CaseRange k{name}Ranges", entries, f"k{name}RangeCount")
    print_array(f"const SpecialCase k{name}Specials", specials or ['{0, ""}'], f"k{name}SpecialCount")


def is_cased(character):
    return character.isupper() or character.islower() or character.istitle()


def is_case_ignorable(character):
    # Between two cased letters, a capital sigma before it tells: what is passed over is ignorable.
    return not is_cased(character) and ("A\u03a3" + character + "a").lower()[1] == "\u03c3" and \
        ("A\u03a3" + character).lower()[1] == "\u03c2"


def main():
    print(f"// Written by make_text_tables.py with Unicode {unicodedata.unidata_version}: edit that.")
    print('// clang-format off\n#include "lib/jinja/text_tables.h"\n\nnamespace trainwright::jinja {\n')
    print_ranges("Unprintable", lambda c: not c.isprintable() and ord(c) > 0x7E)
    print_ranges("Alpha", str.isalpha)
    print_ranges("Digit", str.isdigit)
    print_ranges("Alnum", str.isalnum)
    zeros = [f"0x{point:x}" for point in POINTS if unicodedata.decimal(chr(point), None) == 0]
    print_array("const char32_t kDecimalZeros", zeros, "kDecimalZeroCount")
    print_ranges("UpperCase", str.isupper)
    print_ranges("LowerCase", str.islower)
    print_ranges("Cased", is_cased)
    print_ranges("CaseIgnorable", is_case_ignorable)
    print_mapping("Upper", str.upper)
    print_mapping("Title", str.title)
    print_mapping("Lower", str.lower)
    print("}  // namespace trainwright::jinja")


if __name__ == "__main__":
    sys.exit(main())
