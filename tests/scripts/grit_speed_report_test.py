"""What the report of grit_speed.sh calls met.

usage: grit_speed_report_test.py SOURCE_DIR
"""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(sys.argv.pop(1)) / "scripts/compare"))
import grit_speed_report  # noqa: E402

STEPS = grit_speed_report.UNTIMED_STEPS + 1


def runs_of(lengths, ratios, shares):
    """Rounds of train and a peer: how much faster than the peer it is, and what it takes of its memory."""
    settings = {"model": "m", "lengths": lengths, "precision": "fp32", "attention": "bb", "accum": 1, "batch": 2, "steps": STEPS,
                "threads": 1}

    def run(contestant, number, step_s, memory_bytes):
        return {"settings": settings, "contestant": contestant, "round": number, "started": "2026-01-02T03:04:05",
                "load": [0.5, 0.5], "processor": "p", "versions": ["v"], "losses_nats": [1.0] * STEPS,
                "step_times_s": [step_s] * STEPS, "cpu_times_s": [step_s] * STEPS, "tokens": [1000] * STEPS,
                "padded_tokens": [2500] * STEPS, "max_memory_bytes": memory_bytes}

    return [made for number, (ratio, share) in enumerate(zip(ratios, shares), 1)
            for made in (run("train", number, 1.0, 1e6 * share), run("eager", number, ratio, 1e6))]


def judgement(lengths, ratios, shares=(0.3, 0.3, 0.3), plain=None):
    contest, = grit_speed_report.contests_of(runs_of(lengths, ratios, shares), plain)
    return "".join(contest.judgement())


class GritSpeedReportTest(unittest.TestCase):
    def test_a_goal_is_met_where_the_worst_round_reaches_it(self):
        self.assertIn("goal 2.50: met", judgement("unlike", (2.5, 2.9, 3.0)))
        self.assertIn("goal 2.50: not met, the worst round has 2.39", judgement("unlike", (2.39, 2.52, 2.75)))

    def test_of_memory_the_worst_round_counts_too(self):
        self.assertIn("goal 50%: met", judgement("unlike", (3, 3, 3), (0.4, 0.45, 0.5)))
        self.assertIn("goal 50%: not met, the worst round has 51%", judgement("unlike", (3, 3, 3), (0.4, 0.45, 0.51)))

    def test_equal_lengths_are_judged_by_plain_trainings_ratio(self):
        told = judgement("equal", (1.2, 1.25, 1.3), plain={"fp32": 1.33})
        self.assertIn("goal 1.33: not met, the worst round has 1.20", told)
        self.assertIn("the goal is the ratio of plain training over its best peer, 1.33", told)
        self.assertIn("goal 1.10: met", judgement("equal", (1.2, 1.25, 1.3), plain={"fp32": 1.1}))

    def test_equal_lengths_have_no_goal_without_it(self):
        told = judgement("equal", (9, 9, 9))
        self.assertIn("no goal without plain training's ratio", told)
        self.assertNotIn("goal 1", told)


if __name__ == "__main__":
    unittest.main()
