"""The order in which `train --objective grit` takes the contrastive records of one set, worked out again by sample_order.py."""
import itertools
import json
import subprocess

import sample_order
from torch_grit import BOS, ids_of


def texts_of(chunk):
    """Ids of a chunk's texts, without BOS: under the template grit with the bytes tokenizer each begins with it."""
    texts = []
    for token in chunk["ids"]:
        if token == BOS:
            texts.append([])
        elif texts:
            texts[-1].append(token)
    return map(tuple, texts)


def in_order(records, shards, plan, count):
    """The first `count` records that a run takes. No two have the same query, and none has an instruction.

    records: those of the shards, in any order; plan: of the run, as run_begin has it."""
    number_of = {tuple(ids_of("<|embed|>\n" + record["query"][1])): number for number, record in enumerate(records)}
    assert len(number_of) == len(records), "queries are not distinct"
    cat = subprocess.run(["pack", "--cat", "--json", str(shards)], capture_output=True, text=True, check=True)
    chunks = [[number_of[text] for text in texts_of(json.loads(line)) if text in number_of]
              for line in cat.stdout.splitlines()]
    assert sorted(itertools.chain(*chunks)) == list(range(len(records))), "the shards hold other records"
    stream = sample_order.shuffled_samples(chunks, list, plan["seed"], plan["window_chunks"])
    return [records[number] for number in itertools.islice(stream, count)]
