#!/usr/bin/env python3
"""What scripts/goldens.py promises: rows that meet every pair, hashes of tensors and of nothing else, a check that fails.

usage: goldens_test.py SOURCE_DIR BUILD_DIR
"""
import argparse
import itertools
import json
import pathlib
import struct
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv.pop(1))
BUILD = pathlib.Path(sys.argv.pop(1))
sys.path.insert(0, str(SOURCE / "scripts"))
import goldens  # noqa: E402  pylint: disable=wrong-import-position


def write_safetensors(path, tensors, metadata):
    """tensors: [(name, dtype, shape, bytes)], in this order in the file."""
    header, data = {"__metadata__": metadata}, b""
    for name, dtype, shape, content in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


class GoldensTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.scratch.name)

    def tearDown(self):
        self.scratch.cleanup()

    def test_any_two_values_of_two_factors_meet(self):
        for factors in (goldens.PAIRWISE, goldens.DROPOUT, goldens.TEN,
                        {"a": ["1", "2"], "b": ["1", "2", "3"], "c": ["x", "y"]}):
            rows = goldens.all_pairs(factors)
            for first, second in itertools.combinations(factors, 2):
                met = {(row[first], row[second]) for row in rows}
                self.assertEqual(met, set(itertools.product(factors[first], factors[second])), (first, second))
            self.assertEqual(len({goldens.name_of(row) for row in rows}), len(rows))

    def test_every_record_is_of_the_runs_of_today(self):
        rows = {"pairwise": goldens.pairwise_rows(), "dropout": goldens.all_pairs(goldens.DROPOUT),
                "ten": goldens.all_pairs(goldens.TEN)}
        for path in goldens.RECORDS.glob("*.json"):
            record = json.loads(path.read_text())
            for group in rows.keys() & record.keys():
                self.assertEqual({goldens.name_of(row) for row in rows[group]}, set(record[group]), (path.name, group))

    def test_a_hash_is_that_of_the_tensors_alone(self):
        one, two = ("a", "F32", [2], b"12345678"), ("b", "F32", [1], b"abcd")
        files = {"plain": ([one, two], {}), "turned": ([two, one], {"format": "other"}),
                 "changed": ([one, ("b", "F32", [1], b"abce")], {}), "renamed": ([one, ("c", *two[1:])], {}),
                 "reshaped": ([("a", "F32", [2, 1], one[3]), two], {})}
        hashes = {}
        for name, (tensors, metadata) in files.items():
            write_safetensors(self.folder / name, tensors, metadata)
            hashes[name] = goldens.hash_tensors(goldens.read_safetensors(self.folder / name)[1])
        self.assertEqual(hashes["plain"], hashes["turned"])
        self.assertEqual(len(set(hashes.values())), 4)

    def test_differences_name_run_and_field(self):
        expected = {"a": {"weights": "1", "states": "2"}, "gone": {"weights": "1"}}
        found = {"a": {"weights": "3", "states": "2"}, "new": {"weights": "1"}}
        lines = goldens.differences(expected, found)
        self.assertEqual(lines, ["a:\n    weights 1 -> 3", "gone: is not run any more", "new: has no record"])
        self.assertEqual(goldens.differences(expected, expected), [])

    def test_every_group_names_the_commit_it_was_recorded_with(self):
        lines = (goldens.RECORDS / "BASE").read_text().splitlines()
        self.assertEqual([line.split(" ")[0] for line in lines], goldens.GROUPS)
        for line in lines:
            self.assertRegex(line.split(" ")[1], "^[0-9a-f]{40}$")

    def test_every_old_run_directory_is_of_one_group(self):
        names = [name for group in sorted(goldens.RESUMING) for name in goldens.cases_of(group)]
        self.assertEqual(sorted(names), sorted(json.loads((goldens.STATES / "cases.json").read_text())))
        self.assertEqual(goldens.cases_of("resume_dropout"), ["lora-dropout"])

    def test_another_seed_gives_other_weights_and_the_same_seed_the_same(self):
        row = [goldens.all_pairs(goldens.PAIRWISE)[0]]
        records = []
        for name, seed in (("a", 1), ("b", 1), ("c", 2)):
            session = goldens.Session(BUILD, self.folder / name, argparse.Namespace(seed=seed, jobs=1))
            records.append(session.rows(row))
        self.assertEqual(goldens.differences(records[0], records[1]), [])
        (difference,) = goldens.differences(records[0], records[2])
        self.assertIn("weights", difference)
        self.assertIn("states", difference)


if __name__ == "__main__":
    unittest.main()
