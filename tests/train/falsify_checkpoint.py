#!/usr/bin/env python3
"""Changes one part of a checkpoint and signs it anew, as a program with a bug would have saved it.

usage: falsify_checkpoint.py CHECKPOINT CHANGE

CHANGE is one of
  none                       rewrites the file of the state as it is
  /step=3  /compute/threads=7  /loss_scaler    a field of the state gets a JSON value, or is dropped without one
  layout=[]                  the layout gets another text
  tensor:exp_avg=0.5         all elements of a tensor of the state get a value; without one it is dropped
  weight:NAME=0.5            the same for a tensor of the model
"""
import hashlib
import json
import pathlib
import struct
import sys


def read(path):
    content = path.read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    return json.loads(content[8:8 + size]), content[8 + size:]


def write(path, header, data):
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def change_tensor(header, data, name, value):
    begin, end = header[name]["data_offsets"]
    assert header[name]["dtype"] == "F32"
    if value:
        return data[:begin] + struct.pack("<f", float(value)) * ((end - begin) // 4) + data[end:]
    del header[name]
    for entry in header.values():  # those behind it move up
        if entry.get("data_offsets", [0])[0] >= end:
            entry["data_offsets"] = [offset - (end - begin) for offset in entry["data_offsets"]]
    return data[:begin] + data[end:]


def main():
    folder, (target, _, value) = pathlib.Path(sys.argv[1]), sys.argv[2].partition("=")
    path = folder / ("model.safetensors" if target.startswith("weight:") else "trainwright_state.safetensors")
    header, data = read(path)
    if ":" in target:
        data = change_tensor(header, data, target.split(":")[1], value)
    elif target == "layout":
        header["__metadata__"]["layout"] = value
    elif target != "none":
        state = json.loads(header["__metadata__"]["state"])
        *parents, name = target.split("/")[1:]
        place = state
        for parent in parents:
            place = place[parent]
        del place[name]  # fails for a field that is not there
        if value:
            place[name] = json.loads(value)
        header["__metadata__"]["state"] = json.dumps(state, separators=(",", ":"))
    write(path, header, data)
    metadata_path = folder / "metadata.json"
    metadata = json.loads(metadata_path.read_text())
    content = path.read_bytes()
    metadata["files"][path.name] = {"size_bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    metadata_path.write_text(json.dumps(metadata))


main()
