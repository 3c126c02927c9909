"""The order in which `train` takes its samples, worked out again from its definition.

Written from the comments of lib/data/sample_stream.h and lib/base/rng.h, in the plainest way, so that the comparisons
in this folder do not rest on the code that they check.
"""
import json

MASK = (1 << 64) - 1
IGNORE = -100


def mix64(value):
    """SplitMix64's finaliser."""
    value = (value + 0x9E3779B97F4A7C15) & MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


def xxh3_of_9_to_16_bytes(data, seed):
    """XXH3-64, its branch for 9 to 16 bytes (the names of the streams are that long)."""
    assert 9 <= len(data) <= 16
    secret = [0x1F67B3B7A4A44072, 0x78E5C0CC4EE679CB, 0x2172FFCC7DD05A82, 0x8E2443F7744608B8]  # its bytes 24 to 55
    low = int.from_bytes(data[:8], "little") ^ (((secret[0] ^ secret[1]) + seed) & MASK)
    high = int.from_bytes(data[-8:], "little") ^ (((secret[2] ^ secret[3]) - seed) & MASK)
    product = low * high
    folded = (product & MASK) ^ (product >> 64)
    swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
    value = (len(data) + swapped + high + folded) & MASK
    value ^= value >> 37
    value = (value * 0x165667919E3779F9) & MASK
    return value ^ (value >> 32)


def rng_key(seed, stream, index):
    return mix64(xxh3_of_9_to_16_bytes(stream.encode(), seed) ^ mix64(index))


def rng_bits(key, counter):
    return mix64(mix64((key + counter * 0x9E3779B97F4A7C15) & MASK) ^ key)


def permutation(size, key):
    """The keyed permutation of range(size): eight Feistel rounds, walked until inside the range."""
    bits = (size - 1).bit_length() if size > 1 else 1
    half = (bits + 1) // 2
    mask = (1 << half) - 1

    def encrypt(value):
        left, right = value >> half, value & mask
        for round_number in range(8):
            mixed = mix64(right ^ mix64((key + round_number) & MASK)) & mask
            left, right = right, left ^ mixed
        return left << half | right

    order = []
    for index in range(size):
        value = encrypt(index)
        while value >= size:
            value = encrypt(value)
        order.append(value)
    return order


def read_chunks(path):
    """The chunks that `pack --cat --json` prints."""
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def cut_chunk(chunk, sequence_tokens):
    """A chunk's samples: lists of (tokens, labels), one for each span of a document."""
    samples, sample, size, position = [], [], 0, 0
    for segment in chunk["segments"]:
        if segment["padding"]:
            break
        ids = chunk["ids"][position:position + segment["tokens"]]
        position += segment["tokens"]
        following = ids[1:] + [segment.get("next_token", IGNORE) if segment["ends_mid_document"] else IGNORE]
        for begin in range(0, len(ids), sequence_tokens):
            tokens = ids[begin:begin + sequence_tokens]
            if size + len(tokens) > sequence_tokens:
                samples.append(sample)
                sample, size = [], 0
            sample.append((tokens, following[begin:begin + sequence_tokens]))
            size += len(tokens)
    if sample:
        samples.append(sample)
    return samples


def stored_samples(chunks, sequence_tokens):
    """All samples of a set in stored order: an evaluation."""
    return [sample for chunk in chunks for sample in cut_chunk(chunk, sequence_tokens)]


def training_samples(chunks, sequence_tokens, seed, window_chunks=64):
    """The endless stream of samples that a run trains on."""
    epoch = 0
    while True:
        chunk_order = permutation(len(chunks), rng_key(seed, "chunk order", epoch))
        windows = range(0, len(chunks), window_chunks)
        for window, begin in enumerate(windows):
            stored = []
            for slot in chunk_order[begin:begin + window_chunks]:
                stored += cut_chunk(chunks[slot], sequence_tokens)
            key = rng_bits(rng_key(seed, "sample order", epoch), window)
            for index in permutation(len(stored), key):
                yield stored[index]
        epoch += 1
