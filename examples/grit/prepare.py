#!/usr/bin/env python3
"""Makes the records of the Makefile beside this from problems with solutions.

usage: prepare.py GSM8K.jsonl OUT_DIR INSTRUCTION PROBLEMS [TEST.jsonl]

contrastive.jsonl and conversations.jsonl are for training; held-out.jsonl (conversations), corpus.jsonl, queries.jsonl and
qrels.tsv, as BEIR has them, for evaluation: of TEST.jsonl, or without one of the last seventh of the problems. Of either
file the first PROBLEMS are taken.
"""
import json
import pathlib
import re
import sys


def problems_of(path):
    """(problem, solution), without the marks of a calculator in it: <<3*4=12>>."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            yield record["question"].strip(), re.sub(r"<<[^>]*>>", "", record["answer"]).strip()


def write(path, records):
    with open(path, "w", encoding="utf-8") as file:
        for record in records:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def main():
    path, out, instruction, most = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    problems = list(problems_of(path))[:most]
    if len(sys.argv) > 5:
        held_out = list(problems_of(sys.argv[5]))[:most]
    else:
        begin = len(problems) - len(problems) // 7
        problems, held_out = problems[:begin], problems[begin:]
    write(out / "conversations.jsonl", ({"text": [problem, solution]} for problem, solution in problems))
    write(out / "held-out.jsonl", ({"text": [problem, solution]} for problem, solution in held_out))
    write(out / "corpus.jsonl", ({"_id": f"s{i}", "text": solution} for i, (_, solution) in enumerate(held_out)))
    write(out / "queries.jsonl", ({"_id": f"p{i}", "text": problem} for i, (problem, _) in enumerate(held_out)))
    judgements = "".join(f"p{i}\ts{i}\t1\n" for i in range(len(held_out)))
    (out / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + judgements, encoding="utf-8")
    write(out / "contrastive.jsonl",
          ({"query": [instruction, problem], "pos": [["", solution]], "neg": []} for problem, solution in problems))


if __name__ == "__main__":
    main()
