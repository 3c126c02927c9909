"""What the report of grit_speed.sh calls met, and when it says that work was not the same.

usage: grit_speed_report_test.py SOURCE_DIR
"""
import pathlib
import sys
import types
import unittest

sys.path.insert(0, str(pathlib.Path(sys.argv.pop(1)) / "scripts/compare"))
import grit_speed_report  # noqa: E402


def state_of(lengths, ratios, share=0.3, marks=(), padding=2.5, work=1000):
    """Rounds of train and a peer: how much faster than the peer it is, and what it takes of its memory."""
    def sample(rate, memory_bytes, **more):
        return {"": {"rate": rate, "cpu_s": 1, "wall_s": 1, "cpu_share": 1.0, "work": 1000, "max_memory_bytes": memory_bytes, "losses_nats": [1.0], **more}}

    tries = [{"round": number, "try": 1, "counts": True, "marks": list(marks), "load": [0], "samples": {
        "train": sample(ratio, 1e6 * share), "PyTorch eager, padded": sample(1.0, 1e6, padding=padding, work=work)}}
        for number, ratio in enumerate(ratios, 1)]
    return {"name": "c", "settings": {"lengths": lengths, "precision": "fp32", "threads": 1, "unit": "u"}, "ours": "train", "cpus": [0],
            "peers": {"train": "train", "PyTorch eager, padded": "PyTorch"}, "failed": {}, "tries": tries}


def judgement(lengths, ratios, plain=None, **more):
    return grit_speed_report.judgement(state_of(lengths, ratios, **more), plain or {})


def differences(first_loss=1.0, **more):
    record = types.SimpleNamespace(states=[state_of("unlike", [3] * 5, **more)], extra={"first_losses": {"c": {"eager": first_loss}}})
    return grit_speed_report.differences(record)


class GritSpeedReportTest(unittest.TestCase):
    def test_a_goal_holds_where_the_lower_end_of_the_interval_reaches_it(self):
        self.assertIn("goal 2.50: holds", judgement("unlike", (2.5, 2.9, 3.0, 3.0, 3.0)))
        self.assertIn("goal 2.50: misses", judgement("unlike", (2.39, 2.52, 2.75, 2.8, 2.9)))

    def test_marked_rounds_establish_nothing(self):
        self.assertIn("goal 2.50: not established", judgement("unlike", (3, 3, 3, 3, 3), marks=["steal 3.0%"]))

    def test_a_mode_that_failed_establishes_nothing(self):
        state = state_of("unlike", [3] * 5)
        state["failed"] = {"PyTorch compiled, padded": "no answer within 1800 s"}
        told = grit_speed_report.judgement(state, {})
        self.assertEqual(told.count("goal 2.50: not established, as PyTorch compiled, padded failed"), 2)

    def test_of_memory_the_worst_round_counts(self):
        self.assertIn("goal 50%: met", judgement("unlike", [3] * 5, share=0.5))
        self.assertIn("at most 51% of the memory of the peer with the least (PyTorch eager, padded; goal 50%: not met",
                      judgement("unlike", [3] * 5, share=0.51))

    def test_peers_that_pad_are_judged_apart(self):
        self.assertIn("and 3.00 (3.00 to 3.00) times as fast as the best of those half or more", judgement("unlike", [3] * 5))
        self.assertIn("no peer's work is padding by half or more", judgement("unlike", [3] * 5, padding=1.4))

    def test_equal_lengths_are_judged_by_plain_trainings_ratio(self):
        told = judgement("equal", [1.2, 1.25, 1.3, 1.3, 1.3], plain={"fp32": 1.33})
        self.assertIn("goal 1.33: misses", told)
        self.assertIn("the goal is the ratio of plain training over its best peer, 1.33", told)
        self.assertIn("goal 1.10: holds", judgement("equal", [1.2, 1.25, 1.3, 1.3, 1.3], plain={"fp32": 1.1}))

    def test_equal_lengths_have_no_goal_without_it(self):
        told = judgement("equal", [9] * 5)
        self.assertIn("no goal without plain training's ratio", told)
        self.assertNotIn("goal 1", told)

    def test_other_losses_and_other_tokens_are_not_the_same_work(self):
        self.assertEqual(differences(), [])
        self.assertIn("eager has a loss of 1.00200 in the first step", differences(first_loss=1.002)[0])
        self.assertIn("a round of PyTorch eager, padded has 999 tokens, of train 1000", differences(work=999)[0])


if __name__ == "__main__":
    unittest.main()
