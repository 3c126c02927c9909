#!/usr/bin/env python3
"""What scripts/make_units.py promises: the same data from a seed, right answers, splits that share nothing, a check that
sees when they do.

usage: make_units_test.py SOURCE_DIR
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(sys.argv.pop(1)) / "scripts/make_units.py"
SPLITS = ["train", "valid", "test", "test_pairs", "test_phrasings", "test_hard"]
# Conversions known from elsewhere: standards and an almanac, not the script's table.
KNOWN = {("kilogram", "gram"): 1000, ("mile", "kilometre"): 1.609344, ("mile an hour", "metre a second"): 0.44704,
         ("pound", "kilogram"): 0.45359237, ("gallon", "litre"): 3.785411784, ("year", "day"): 365.24219878,
         ("week", "hour"): 168, ("byte", "bit"): 8, ("fluid ounce", "millilitre"): 29.5735295625,
         ("gigabyte", "kilobyte"): 1e6, ("foot", "inch"): 12, ("kilometre an hour", "metre a second"): 1 / 3.6,
         ("century", "year"): 100, ("tonne", "ounce"): 35273.96194958, ("yard", "metre"): 0.9144}


def run(*arguments):
    return subprocess.run([sys.executable, SCRIPT, *map(str, arguments)], capture_output=True, text=True)


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


class MakeUnitsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.data = cls.folder / "a"
        made = run("--out", cls.data, "--seed", 3)
        assert made.returncode == 0, made.stderr

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def test_a_seed_decides_every_byte(self):
        for seed, same in ((3, True), (4, False)):
            other = self.folder / f"seed-{seed}"
            self.assertEqual(run("--out", other, "--seed", seed).returncode, 0)
            equal = all((other / file.name).read_bytes() == file.read_bytes() for file in self.data.iterdir())
            self.assertEqual(equal, same)

    def test_counts_are_those_asked_for(self):
        out = self.folder / "counts"
        self.assertEqual(run("--out", out, "--train", 30, "--valid", 7, "--test", 9, "--extra-tests", 5).returncode, 0)
        self.assertEqual([len(lines(out / f"{name}.sft.jsonl")) for name in SPLITS], [30, 7, 9, 5, 5, 5])

    def test_splits_share_no_conversion_and_no_question(self):
        conversions, questions, pairs = {}, {}, {}
        for name in SPLITS:
            gold = lines(self.data / f"{name}.gold.jsonl")
            conversions[name] = {(item["value"], item["from"], item["to"]) for item in gold}
            questions[name] = {item["prompt"] for item in gold}
            pairs[name] = {frozenset((item["from"], item["to"])) for item in gold}
            self.assertEqual(len(questions[name]), len(gold), "a question came twice")
        for i, left in enumerate(SPLITS):
            for right in SPLITS[i + 1:]:
                self.assertFalse(conversions[left] & conversions[right], (left, right))
                self.assertFalse(questions[left] & questions[right], (left, right))
        for name in SPLITS:
            self.assertEqual(bool(pairs["test_pairs"] & pairs[name]), name == "test_pairs")
        self.assertTrue(all("." in item or "/" in item for item, _, _ in conversions["test_hard"]))
        self.assertTrue(all(int(item) in range(1, 11) for item, _, _ in conversions["train"]))

    def test_the_check_sees_a_leak(self):
        self.assertEqual(run("--check", self.data).returncode, 0)
        leaky = self.folder / "leaky"
        shutil.copytree(self.data, leaky)
        with (leaky / "test.gold.jsonl").open("a") as test:
            test.write((leaky / "train.gold.jsonl").read_text().splitlines()[5] + "\n")
        checked = run("--check", leaky)
        self.assertEqual(checked.returncode, 1)
        self.assertIn("train/test conversions: 1 shared", checked.stderr)

    def test_gold_answers_agree_with_known_conversions(self):
        found = 0
        for name in SPLITS:
            for item in lines(self.data / f"{name}.gold.jsonl"):
                value = eval(item["value"])  # "3" or "27/2", by the script
                for (a, b), factor in KNOWN.items():
                    expected = (value * factor if (item["from"], item["to"]) == (a, b) else
                                value / factor if (item["from"], item["to"]) == (b, a) else None)
                    if expected is not None:
                        self.assertAlmostEqual(item["gold"] / expected, 1, delta=1e-9, msg=str(item))
                        found += 1
        self.assertGreater(found, 50)

    def test_rationales_end_in_the_answer_and_say_what_is_true(self):
        step = re.compile(r"so ([\d.]+) ([*/]) ([\d.]+) = ([\d.]+)\. <answer>([\d.]+)</answer>$")
        for name in SPLITS:
            gold = lines(self.data / f"{name}.gold.jsonl")
            prompts = lines(self.data / f"{name}.prompts.jsonl")
            for item, answer, prompt in zip(lines(self.data / f"{name}.sft.jsonl"), gold, prompts, strict=True):
                self.assertEqual(prompt, {"prompt": item["question"] + " "})
                self.assertEqual(answer["prompt"], prompt["prompt"])
                left, sign, right, result, tagged = step.search(item["answer"]).groups()
                value = float(left) * float(right) if sign == "*" else float(left) / float(right)
                self.assertEqual(result, tagged)
                self.assertAlmostEqual(float(result) / value, 1, delta=1e-5)
                self.assertAlmostEqual(float(tagged) / answer["gold"], 1, delta=1e-4)

    def test_prompts_hold_no_answers(self):
        for name in SPLITS:
            for item in lines(self.data / f"{name}.prompts.jsonl"):
                self.assertEqual(list(item), ["prompt"])


if __name__ == "__main__":
    unittest.main()
