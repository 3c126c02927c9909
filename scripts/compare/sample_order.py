"""The order in which `train` takes its samples, worked out again from its definition.

Written from the comments of lib/loading/lm_cutter.h, sample_order.h and lib/base/rng.h, in the plainest way, so that
the comparisons in this folder do not rest on the code that they check.
"""
import itertools
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


def chunk_order_key(seed, number, sweep, stream="chunk order"):
    """The key of a pass over the set of that number."""
    key = rng_key(seed, stream, sweep)
    return rng_bits(key, number) if number else key


def shuffled_chunks(chunks, key, block_chunks=1):
    """A whole pass over a set: its blocks in the order of the key, the short one at a place of its own."""
    blocks, left = divmod(chunks, block_chunks)
    order = permutation(blocks, key) if blocks else []
    parts = [list(range(block * block_chunks, (block + 1) * block_chunks)) for block in order]
    if left:
        parts.insert(rng_bits(key, chunks) % (blocks + 1), list(range(blocks * block_chunks, chunks)))
    return [chunk for part in parts for chunk in part]


def drawn_set(rank, weights):
    """Which set the slot of that rank of the whole stream is drawn from, and how many before it were."""
    for number, weight in enumerate(weights):
        left = sum(weights[number:])
        before = rank * weight // left
        if (rank + 1) * weight // left > before:
            return number, before
        rank -= before
    raise AssertionError("the last set takes what the others leave")


def chunk_stream(sizes, seed, weights=None, block_chunks=1):
    """The endless stream of (set, pass, place, chunk of the set): one for each slot."""
    rank, passes = 0, {}
    while True:
        number, count = drawn_set(rank, weights or sizes)
        sweep, place = divmod(count, sizes[number])
        if passes.get(number, (None, None))[0] != sweep:
            key = chunk_order_key(seed, number, sweep)
            passes[number] = (sweep, shuffled_chunks(sizes[number], key, block_chunks))
        yield number, sweep, place, passes[number][1][place]
        rank += 1


def substitutes(chunks, seed, number, sweep, place):
    """The chunks of the set of that number that are tried, in this order, for one that cannot be read."""
    order = permutation(chunks, chunk_order_key(seed, number, sweep, "substitutes"))
    return order[place:] + order[:place]


def choose(count, wanted, key):
    """Numbers below count, wanted of them, without replacement from their list as often as that takes."""
    numbers = list(range(count)) * -(-wanted // count)
    for i in range(wanted):
        j = i + (rng_bits(key, i) * (len(numbers) - i) >> 64)
        numbers[i], numbers[j] = numbers[j], numbers[i]
    return numbers[:wanted]


def drawn_texts(number, ordinal, positives, negatives, wanted_positives, wanted_negatives, seed):
    """Which positives and negatives of a record a step takes; wanted_positives 0 are all."""
    def drawn(count, wanted, stream):
        return choose(count, wanted, rng_bits(rng_key(seed, stream, number), ordinal)) if count else []
    if wanted_positives == 0:
        chosen = list(range(positives))
    else:
        chosen = drawn(positives, min(wanted_positives, positives), "grit positives")
    return chosen, drawn(negatives, wanted_negatives, "grit negatives")


def set_batches(sizes, step_samples, seed, epoch):
    """The batches of an epoch of several sets, in their order: of each the set of each sample."""
    batches, remainders = [], []
    for number, samples in enumerate(sizes):
        batches += [[number] * step_samples for _ in range(samples // step_samples)]
        remainders += [number] * (samples % step_samples)
    if remainders:
        order = permutation(len(remainders), rng_key(seed, "grit remainders", epoch))
        mixed = [remainders[place] for place in order]
        for begin in range(0, len(mixed) // step_samples * step_samples, step_samples):
            batches.append(mixed[begin:begin + step_samples])
    if not batches:
        return []
    return [batches[place] for place in permutation(len(batches), rng_key(seed, "grit batches", epoch))]


def kept_samples(samples, most, number, seed):
    """The samples of a set that a cap keeps, in the order of where the permutation sends them."""
    order = permutation(samples, rng_bits(rng_key(seed, "sample cap", 0), number))
    return sorted((place, sample) for sample, place in enumerate(order) if place < most)


def extra_draws(own, extra, seed, epoch, unique):
    """Which of the samples that are kept an epoch draws again."""
    if not unique:
        key = rng_key(seed, "extra draws", epoch)
        return [rng_bits(key, i) * own >> 64 for i in range(extra)]
    drawn = []
    for i in range(epoch * extra, (epoch + 1) * extra):
        drawn.append(permutation(own, rng_key(seed, "extra passes", i // own))[i % own])
    return drawn


def share(rank, ranks, samples):
    """The numbers of the samples of a step that this rank has."""
    return range(rank * samples // ranks, (rank + 1) * samples // ranks)


def shuffled_samples(chunks, cut, seed, window_chunks=64):
    """The endless stream of samples that a run trains on, of one set without blocks; cut(chunk): its samples."""
    order = chunk_stream([len(chunks)], seed)
    for epoch in itertools.count():
        for window, begin in enumerate(range(0, len(chunks), window_chunks)):
            stored = []
            for _ in range(begin, min(begin + window_chunks, len(chunks))):
                stored += cut(chunks[next(order)[-1]])
            key = rng_bits(rng_key(seed, "sample order", epoch), window)
            for index in permutation(len(stored), key) if stored else []:
                yield stored[index]


def training_samples(chunks, sequence_tokens, seed, window_chunks=64):
    """shuffled_samples of documents that are cut into sequences."""
    return shuffled_samples(chunks, lambda chunk: cut_chunk(chunk, sequence_tokens), seed, window_chunks)
