"""When rft_accuracy.sh says that the optimised configuration keeps the baseline's accuracy.

usage: rft_accuracy_test.py SOURCE_DIR
"""
import argparse
import pathlib
import sys
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(sys.argv.pop(1)) / "scripts/compare"))
import rft_accuracy  # noqa: E402


def report_of(baseline, fast, questions=1000, before=0):
    """Text and verdict of tunings that answered so many questions rightly, by seed."""
    options = argparse.Namespace(labelled=1, tuned=1, questions=questions, steps=1)
    rows = [{"preset": preset, "seed": seed, "steps": 1, "tokens": 9, "loss": 1.0, "seconds": 1.0, "n": questions, "right": right,
             "answered": questions}
            for preset, all_right in (("rft-baseline", baseline), ("rft-fast", fast)) for seed, right in enumerate(all_right, 1)]
    with mock.patch.object(rft_accuracy, "describe", return_value="a machine"):
        return rft_accuracy.report(options, {"n": questions, "right": before, "answered": 0}, rows)


class RftAccuracyTest(unittest.TestCase):
    def test_the_interval_ends_where_the_score_test_begins_to_reject(self):
        for right, n in ((161, 1000), (1, 20), (0, 50), (50, 50)):
            share = right / n
            for end in rft_accuracy.wilson(right, n):
                self.assertAlmostEqual((share - end) ** 2, 1.959964 ** 2 * end * (1 - end) / n, 9)

    def test_accuracy_is_kept_within_and_above_the_interval_and_not_below(self):
        # Of 160 in 1000 the interval is 13.9 % to 18.4 %.
        for fast, place, kept in ((140, "within", True), (138, "below", False), (183, "within", True), (190, "above", True)):
            text, verdict = report_of([160], [fast])
            self.assertIn(f"is {place} the interval", text)
            self.assertEqual(verdict, kept, text)

    def test_tuning_that_changed_nothing_is_told(self):
        self.assertIn("had 13.8%, which is below it", report_of([160], [160], before=138)[0])
        self.assertIn("had 14.2%: that is not below it", report_of([160], [160], before=142)[0])

    def test_seeds_on_the_same_questions_do_not_narrow_the_interval(self):
        text, verdict = report_of([160, 160, 160], [141, 140, 142])
        self.assertIn("| rft-baseline | mean | | | | | 16.0% (13.9% to 18.4%) | |", text)
        self.assertTrue(verdict)


if __name__ == "__main__":
    unittest.main()
