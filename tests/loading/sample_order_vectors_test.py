#!/usr/bin/env python3
"""The test vectors of man/trainwright-sample-order.5 are those of the slow implementation in scripts/compare.

usage: sample_order_vectors_test.py SOURCE_DIR

That one is written from the definition and shares no code with the suite, whose own test reads the same vectors.
"""
import itertools
import pathlib
import re
import sys

source = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(source / "scripts/compare"))
import sample_order as order  # noqa: E402


def value_of(name, arguments):
    """What the slow implementation says of a vector, as the page writes it."""
    if name == "mix64":
        return f"{order.mix64(int(arguments)):016x}"
    if name == "key":
        seed, stream, index = re.fullmatch(r'(\d+) "(.*)" (\d+)', arguments).groups()
        return f"{order.rng_key(int(seed), stream, int(index)):016x}"
    if name == "bits":
        key, counter = arguments.split()
        return f"{order.rng_bits(int(key, 16), int(counter)):016x}"
    if name == "permutation":
        size, key = arguments.split()
        return " ".join(map(str, order.permutation(int(size), int(key, 16))))
    if name == "choose":
        count, wanted, key = arguments.split()
        return " ".join(map(str, order.choose(int(count), int(wanted), int(key, 16))))
    if name == "extras":
        own, extra, seed, epoch, kind = arguments.split()
        drawn = order.extra_draws(int(own), int(extra), int(seed), int(epoch), kind == "unique")
        return " ".join(map(str, drawn))
    numbers = [int(number) for number in arguments.split()]
    if name == "texts":
        parts = order.drawn_texts(*numbers)
        return " | ".join(" ".join(map(str, part)) or "none" for part in parts)
    if name == "batches":
        *sizes, step_samples, seed, epoch = numbers
        batches = order.set_batches(sizes, step_samples, seed, epoch)
        return " | ".join(" ".join(map(str, batch)) for batch in batches)
    if name == "caps":
        return " ".join(str(sample) for _, sample in order.kept_samples(*numbers))
    if name == "pass":
        chunks, block, seed = numbers
        return " ".join(map(str, order.shuffled_chunks(chunks, order.chunk_order_key(seed, 0, 0), block)))
    if name == "draws":
        return [str(order.drawn_set(rank, numbers)[0]) for rank in range(20)]
    if name == "slots":
        *sets, seed = numbers
        sizes, weights = sets[:len(sets) // 2], sets[len(sets) // 2:]
        stream = itertools.islice(order.chunk_stream(sizes, seed, weights), 12)
        return [".".join(map(str, slot)) for slot in stream]
    if name == "shares":
        samples, ranks = numbers
        shares = [" ".join(map(str, order.share(rank, ranks, samples))) or "none" for rank in range(ranks)]
        return " | ".join(shares)
    chunks, seed, place = numbers
    return " ".join(map(str, order.substitutes(chunks, seed, 0, 0, place)))


lines = (source / "man/trainwright-sample-order.5").read_text(encoding="utf-8").splitlines()
names = "mix64|key|bits|permutation|pass|draws|slots|substitutes|shares|choose|texts|batches|caps|extras"
vectors = [match.groups() for match in (re.fullmatch(rf"({names}) (.*) = (.*)", line) for line in lines) if match]
if len(vectors) < 20 or {name for name, _, _ in vectors} != set(names.split("|")):
    sys.exit(f"found only {len(vectors)} vectors: did the page's layout change?")
wrong = []
for name, arguments, written in vectors:
    expected = value_of(name, arguments)
    if isinstance(expected, list):
        expected = " ".join(expected[:len(written.split())])
    if expected != written:
        wrong.append(f"{name} {arguments}: the page says {written}, the definition {expected}")
if wrong:
    sys.exit("\n".join(wrong))
print(f"{len(vectors)} vectors agree")
