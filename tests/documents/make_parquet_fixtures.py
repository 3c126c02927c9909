#!/usr/bin/env python3
"""Writes tests/documents/fixtures/parquet: small parquet files of every kind, and rows.jsonl with what pyarrow reads in them.

usage: make_parquet_fixtures.py FOLDER        (needs pyarrow; the files are committed)

rows.jsonl has one object a line: {"file": name, "row": number from 1, "text": string or null} for the column that
the name of the file says how to read: text, or message.content in nested*.
"""
import json
import pathlib
import random
import sys

import pyarrow as pa
import pyarrow.parquet as pq

WORDS = ["the", "ship", "naïve", "日本語", "line\nbreak", "🙂", "a\0b", "tab\t", '"quoted"', "  spaces  ", ""]


def texts_of(count, nulls, seed):
    rng = random.Random(seed)
    texts = []
    for i in range(count):
        text = " ".join(rng.choice(WORDS) for _ in range(rng.randrange(0, 12))) + str(i)
        texts.append(None if nulls and rng.randrange(7) == 0 else text)
    return texts


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    files = {}

    def write(name, text, type_, **options):
        table = pa.table({"id": pa.array(range(len(text)), pa.int64()), "text": pa.array(text, pa.string()).cast(type_),
                          "title": pa.array([f"title {i}" for i in range(len(text))])})
        pq.write_table(table, folder / name, **options)
        files[name] = "text"

    for codec in ("none", "snappy", "gzip", "zstd", "lz4", "brotli"):
        write(f"{codec}.parquet", texts_of(60, False, codec), pa.string(), compression=codec, row_group_size=25)
    write("nulls.parquet", texts_of(80, True, "nulls"), pa.string(), row_group_size=33)
    write("small_pages.parquet", texts_of(300, True, "pages"), pa.string(), data_page_size=200, use_dictionary=False,
          row_group_size=120, write_page_checksum=True)
    write("large_string.parquet", texts_of(40, True, "large"), pa.large_string(), data_page_version="2.0")
    write("dictionary.parquet", [WORDS[i * i % 11] + "x" for i in range(200)], pa.dictionary(pa.int32(), pa.string()),
          row_group_size=64)
    write("delta.parquet", texts_of(90, True, "delta"), pa.string(), use_dictionary=False,
          column_encoding={"text": "DELTA_BYTE_ARRAY", "id": "PLAIN", "title": "DELTA_LENGTH_BYTE_ARRAY"})
    write("binary.parquet", texts_of(40, False, "binary"), pa.binary())
    write("no_rows.parquet", [], pa.string())

    content = texts_of(50, True, "nested")
    messages = [None if i % 9 == 8 else {"role": "user", "content": text} for i, text in enumerate(content)]
    tags = [["x", "y"][: i % 3] for i in range(50)]
    pq.write_table(pa.table({"message": messages, "tags": tags}), folder / "nested.parquet", row_group_size=20)
    files["nested.parquet"] = "message.content"

    bad = pa.array([b"good", b"bad \xff byte", b"good"], pa.binary())
    pq.write_table(pa.table({"text": bad}), folder / "invalid_utf8.parquet")

    with open(folder / "rows.jsonl", "w", encoding="utf-8") as out:
        for name, column in files.items():
            table = pq.read_table(folder / name)
            values = table.column(column.split(".")[0]).to_pylist()
            for part in column.split(".")[1:]:
                values = [None if value is None else value[part] for value in values]
            for i, value in enumerate(values):
                text = value.decode() if isinstance(value, bytes) else value
                print(json.dumps({"file": name, "row": i + 1, "text": text}, ensure_ascii=False), file=out)


if __name__ == "__main__":
    main()
