"""Writes fixtures/foreign/: small files of token ids as other programs write them, and expected.json with their documents.

Run it again only to add files. The formats are those of numpy and torch themselves; llm.c's, nanoGPT's and
Megatron-LM's writers are a few lines each, restated here from their sources.
"""
import collections
import json
import pathlib
import pickle
import struct
import zipfile

import numpy as np
import torch

OUT = pathlib.Path(__file__).parent / "fixtures" / "foreign"
rng = np.random.default_rng(7)
expected = {}


def documents(count, vocab, longest):
    return [rng.integers(1, vocab, rng.integers(1, longest)).tolist() for _ in range(count)]


def write(name, data, docs):
    (OUT / name).write_bytes(data)
    expected[name] = docs


def llmc(name, docs, magic, version, dtype, eot):
    docs = [[eot] + doc for doc in docs]
    ids = [i for doc in docs for i in doc]
    header = np.zeros(256, np.int32)
    header[:3] = magic, version, len(ids)
    # The id in front of a document ends the one before it.
    write(name, header.tobytes() + np.array(ids, dtype).tobytes(), [doc + [eot] for doc in docs[:-1]] + docs[-1:])


def megatron(stem, docs, code, dtype):
    # Every document but the first is two sequences.
    sequences, boundaries = [], [0]
    for i, doc in enumerate(docs):
        parts = [doc] if i == 0 else [doc[: len(doc) // 2], doc[len(doc) // 2 :]]
        sequences += parts
        boundaries.append(len(sequences))
    lengths = np.array([len(s) for s in sequences], np.int32)
    pointers = np.concatenate([[0], np.cumsum(lengths[:-1], dtype=np.int64) * np.dtype(dtype).itemsize]).astype(np.int64)
    index = b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, code, len(sequences), len(boundaries))
    index += lengths.tobytes() + pointers.tobytes() + np.array(boundaries, np.int64).tobytes()
    (OUT / (stem + ".bin")).write_bytes(np.concatenate([np.array(s, dtype) for s in sequences]).tobytes())
    write(stem + ".idx", index, docs)


def padded(docs):
    lengths = np.array([len(d) for d in docs], np.int32)
    ids = np.zeros((len(docs), lengths.max()), np.int32)
    for row, doc in zip(ids, docs):
        row[: len(doc)] = doc
    return ids, lengths, (np.arange(ids.shape[1]) < lengths[:, None]).astype(np.int32)


OUT.mkdir(parents=True, exist_ok=True)
llmc("gpt2.bin", documents(5, 50256, 40), 20240520, 1, np.uint16, 50256)
llmc("llama3.bin", documents(5, 128000, 40), 20240801, 7, np.uint32, 128000)
docs = [doc + [50256] for doc in documents(6, 50256, 30)]
write("nanogpt.bin.u16", np.array([i for d in docs for i in d], np.uint16).tobytes(), docs)
megatron("short", documents(4, 30000, 30), 8, np.uint16)
megatron("wide", documents(4, 200000, 30), 4, np.int32)

docs = documents(6, 50257, 25)
ids, lengths, mask = padded(docs)
for name, save in (("stored.npz", np.savez), ("deflated.npz", np.savez_compressed)):
    save(OUT / name, input_ids=ids, attention_mask=mask, sequence_lengths=lengths)
    expected[name] = docs
np.savez_compressed(OUT / "masked.npz", input_ids=ids.astype(np.int64), attention_mask=mask.astype(np.uint8))
expected["masked.npz"] = docs
np.savez(OUT / "alone.npz", np.array(docs[0], np.uint16))
expected["alone.npz"] = docs[:1]

tensors = [torch.tensor(doc) for doc in docs]
for name, value, of in (
    ("long.pt", torch.tensor([d[:3] for d in docs if len(d) > 2]), [d[:3] for d in docs if len(d) > 2]),
    ("int.pt", torch.tensor(docs[1], dtype=torch.int32), docs[1:2]),
    ("uint16.pt", torch.tensor(docs[1], dtype=torch.uint16), docs[1:2]),
    ("list.pt", tensors, docs),
    ("slices.pt", list(torch.split(torch.tensor(docs[0] + docs[1]), 5)),
     [list(c) for c in torch.split(torch.tensor(docs[0] + docs[1]), 5)]),
    ("numbers.pt", docs, docs),
    ("dict.pt", {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}, docs),
    ("lengths.pt", collections.OrderedDict(input_ids=torch.from_numpy(ids), lengths=torch.from_numpy(lengths)), docs),
    ("records.pt", [{"input_ids": t, "name": "x", "score": 1.5, "seen": None} for t in tensors], docs),
):
    torch.save(value, OUT / name)
    expected[name] = [[int(i) for i in doc] for doc in of]
torch.save(tensors, OUT / "protocol4.pt", pickle_protocol=4)
expected["protocol4.pt"] = docs


class Evil:
    def __reduce__(self):
        return (exec, ("raise SystemExit('the pickle ran')",))


torch.save({"input_ids": Evil()}, OUT / "evil.pt")
torch.save({"input_ids": torch.tensor([0.5, 1.5])}, OUT / "float.pt")
torch.save({"input_ids": np.array([1, 2])}, OUT / "numpy.pt")
torch.save(torch.arange(12).reshape(3, 4).T, OUT / "strided.pt")
np.savez(OUT / "float.npz", input_ids=np.array([[0.5]]))
np.savez(OUT / "fortran.npz", input_ids=np.asfortranarray(np.arange(12).reshape(3, 4)))
np.savez(OUT / "negative.npz", input_ids=np.array([[3, -1]]))
np.savez(OUT / "lengths.npz", input_ids=ids, sequence_lengths=lengths + 100)
np.savez(OUT / "names.npz", first=ids, second=ids)

# Padding that lists, rows and truth values tell.
row = np.array(docs[2] + [0, 0], np.int32)
np.savez(OUT / "row_mask.npz", input_ids=row, attention_mask=(np.arange(len(row)) < len(docs[2])).astype(np.int32))
np.savez(OUT / "truth_mask.npz", input_ids=ids, attention_mask=mask.astype(bool))
torch.save({"input_ids": docs[3] + [0, 0, 0], "attention_mask": [1] * len(docs[3]) + [0, 0, 0]}, OUT / "list_mask.pt")
expected.update({"row_mask.npz": docs[2:3], "truth_mask.npz": docs, "list_mask.pt": docs[3:4]})
np.savez(OUT / "truth.npz", input_ids=mask.astype(bool))
torch.save({"input_ids": torch.from_numpy(ids), "lengths": lengths.tolist()}, OUT / "list_lengths.pt")
torch.save({"input_ids": docs[3], "attention_mask": [1]}, OUT / "short_mask.pt")

# Lengths of a single row, and masks beside lengths: the mask says which ids are real, the lengths only how many.
left = np.array([[0] * (ids.shape[1] - len(d)) + d for d in docs], np.int32)
left_mask = (np.arange(ids.shape[1]) >= ids.shape[1] - lengths[:, None]).astype(np.uint8)
np.savez(OUT / "row_length.npz", input_ids=row, lengths=np.array([len(docs[2])]))
np.savez(OUT / "row_scalar.npz", tokens=row, sequence_lengths=np.array(len(docs[2]), np.uint8))
np.savez(OUT / "left.npz", input_ids=left, attention_mask=left_mask, lengths=lengths)
np.savez(OUT / "left_row.npz", input_ids=left[0], attention_mask=left_mask[0], lengths=lengths[:1])
padded_list, row_tensor = docs[2] + [0, 0], torch.from_numpy(row)
for name, value, of in (
    ("row_length.pt", {"input_ids": row_tensor, "lengths": torch.tensor([len(docs[2])])}, docs[2:3]),
    ("row_scalar.pt", {"input_ids": row_tensor, "lengths": torch.tensor(len(docs[2]), dtype=torch.int32)}, docs[2:3]),
    ("row_number.pt", {"input_ids": row_tensor, "lengths": len(docs[2])}, docs[2:3]),
    ("list_length.pt", {"input_ids": padded_list, "lengths": [len(docs[2])]}, docs[2:3]),
    ("list_tensor_length.pt", {"input_ids": padded_list, "lengths": torch.tensor([len(docs[2])])}, docs[2:3]),
    ("list_left.pt", {"input_ids": [0, 0] + docs[2], "lengths": len(docs[2]),
                      "attention_mask": [0, 0] + [1] * len(docs[2])}, docs[2:3]),
    ("left.pt", {"input_ids": torch.from_numpy(left), "attention_mask": torch.from_numpy(left_mask),
                 "lengths": torch.from_numpy(lengths)}, docs),
):
    torch.save(value, OUT / name)
    expected[name] = of
expected.update({"row_length.npz": docs[2:3], "row_scalar.npz": docs[2:3], "left.npz": docs, "left_row.npz": docs[:1]})
np.savez(OUT / "not_of_mask.npz", input_ids=left, attention_mask=left_mask, lengths=np.roll(lengths, 1))
torch.save({"input_ids": [0, 7, 8], "attention_mask": [0, 1, 1], "lengths": [1]}, OUT / "not_of_mask.pt")
np.savez(OUT / "flat.npz", tokens=row, lengths=np.array([2, len(row) - 2]))
torch.save({"tokens": row_tensor, "lengths": torch.tensor([2, len(row) - 2])}, OUT / "flat.pt")
torch.save({"tokens": padded_list, "lengths": len(padded_list) + 1}, OUT / "long_list.pt")


def hostile(name, program):
    with zipfile.ZipFile(OUT / name, "w") as archive:
        archive.writestr("archive/data.pkl", program)


hostile("nested.pt", b"\x80\x02N" + b"\x85" * 100 + b".")
hostile("long_key.pt", b"\x80\x02}X" + struct.pack("<I", 1001) + b"k" * 1001 + b"Ns.")
(OUT / "expected.json").write_text(json.dumps(expected, separators=(",", ":"), sort_keys=True) + "\n")
