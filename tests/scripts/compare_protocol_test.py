"""How scripts/compare times contestants and judges goals, with a clock, a machine and contestants that are made up.

usage: compare_protocol_test.py SOURCE_DIR
"""
import argparse
import contextlib
import io
import itertools
import json
import os
import pathlib
import random
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(SOURCE / "scripts/compare"))
import machine  # noqa: E402
import machine_rates  # noqa: E402
import precisions  # noqa: E402
import protocol  # noqa: E402
from protocol import Comparison, Contestant, ContestantFailed, Record, Results, Sample  # noqa: E402


class FakeMachine:
    """A machine whose clock goes on only where a contestant works, and whose host takes what the test says."""

    def __init__(self, kind="amd-avx512", microcode="0x1"):
        self.microcode = microcode
        self.kind, self.time_s, self.stolen, self.spins, self.pins = kind, 0.0, 0.0, itertools.repeat(machine.Spin(2.0, 1.0)), []
        self.may_use = {0, 1}

    def record(self):
        return {"kind": self.kind, "model": "a processor", "microcode": self.microcode, "units": [], "processors": 2, "governor": None, "virtual": True}

    def now(self):
        return self.time_s

    def load(self):
        return 0.5

    def mhz(self, cpus):
        return [3000.0 for _ in cpus]

    def stolen_s(self, cpus):
        return self.stolen

    def allowed(self):
        return self.may_use

    def choose(self, count):
        return list(range(count))

    @contextlib.contextmanager
    def pinned(self, cpus):
        self.pins.append(list(cpus))
        yield

    def spin(self, cpus):
        return next(self.spins)


CODE = {"commit": "abc", "programs": "built", "scripts": "s", "python": "3", "peers": {"torch": "2.11"}}


class Scripted:
    """A contestant that takes the given seconds for 10 pieces of work, call by call (the last again and again)."""

    def __init__(self, fake, cpu_s, wall_s=None, stolen_s=(0.0,), calls=None, name=""):
        self.fake, self.name, self.calls = fake, name, calls
        self.cpu_s, self.wall_s, self.stolen_s = map(self.lasting, (cpu_s, wall_s or cpu_s, stolen_s))

    @staticmethod
    def lasting(values):
        return itertools.chain(values, itertools.repeat(values[-1]))

    def __call__(self):
        if self.calls is not None:
            self.calls.append(self.name)
        cpu_s, wall_s = next(self.cpu_s), next(self.wall_s)
        self.fake.time_s += wall_s
        self.fake.stolen += next(self.stolen_s)
        return Sample(10, cpu_s, wall_s)


def compared(fake, ours, *others, **options):
    contestants = [Contestant("ours", ours), *(Contestant(f"peer {i}", other, peer="peer") for i, other in enumerate(others, 1))]
    comparison = Comparison("c", "pieces", contestants, machine=fake, **options).run()
    return comparison, Results(comparison.state())


class Intervals(unittest.TestCase):
    def test_of_five_values_it_is_all_of_them(self):
        self.assertEqual(protocol.interval([5, 1, 4, 2, 3]), (1, 5, 0.9375))

    def test_fewer_than_five_have_none(self):
        self.assertIsNone(protocol.interval([1, 2, 3, 4]))

    def test_more_values_leave_out_the_outermost(self):
        self.assertEqual(protocol.interval(list(range(9)))[:2], (1, 7))
        self.assertEqual(protocol.interval(list(range(20)))[:2], (5, 14))

    def test_it_covers_the_median_as_often_as_it_reports(self):
        draw = random.Random(1)
        for count in (5, 12):
            held = 0
            for _ in range(4000):
                low, high, probability = protocol.interval([draw.expovariate(1.0) for _ in range(count)])
                held += low <= 0.6931471805599453 <= high
            self.assertAlmostEqual(held / 4000, probability, delta=0.015)


class Verdicts(unittest.TestCase):
    def statement(self, peer_s, goal=2.0, rounds=5):
        fake = FakeMachine()
        return compared(fake, Scripted(fake, [1.0]), Scripted(fake, peer_s), rounds=rounds)[1].statement(goal=goal)

    def test_a_goal_holds_where_the_lower_end_reaches_it(self):
        told = self.statement([2.0, 2.1, 2.2, 2.3, 2.4])
        self.assertEqual((told["ratio"], told["low"], told["high"], told["verdict"]), (2.2, 2.0, 2.4, "holds"))

    def test_a_lower_end_below_the_goal_misses_it(self):
        told = self.statement([1.99, 2.5, 2.5, 2.5, 2.5])
        self.assertEqual((told["ratio"], told["verdict"]), (2.5, "misses"))

    def test_fewer_than_five_rounds_establish_nothing(self):
        told = self.statement([9.0], rounds=4)
        self.assertEqual((told["ratio"], told["low"], told["verdict"]), (9.0, None, "not established"))

    def test_ratios_are_those_of_one_round(self):
        # The machine gets slower from round to round, both alike: the speeds spread, their ratio does not.
        fake = FakeMachine()
        _, results = compared(fake, Scripted(fake, [1, 2, 3, 4, 5]), Scripted(fake, [3, 6, 9, 12, 15]))
        self.assertEqual(results.ratios("peer 1"), [3.0] * 5)
        self.assertEqual(results.rates("ours"), [10 / n for n in range(1, 6)])

    def test_a_peer_is_taken_in_its_best_mode(self):
        fake = FakeMachine()
        _, results = compared(fake, Scripted(fake, [1.0]), Scripted(fake, [3.0]), Scripted(fake, [1.5]), Scripted(fake, [2.0]))
        told = results.statement("peer", goal=1.5)
        self.assertEqual((told["mode"], told["ratio"], told["verdict"]), ("peer 2", 1.5, "holds"))
        self.assertEqual(results.statement("peer 1")["ratio"], 3.0)


    def test_other_modes_of_ours_are_no_peers_and_may_be_judged_themselves(self):
        fake = FakeMachine()
        contestants = [Contestant("ours", Scripted(fake, [2.0]), peer="suite"), Contestant("ours, fast", Scripted(fake, [1.0]), peer="suite"),
                       Contestant("peer", Scripted(fake, [3.0]))]
        results = Results(Comparison("c", "u", contestants, machine=fake).run().state())
        self.assertEqual((results.statement()["mode"], results.statement()["ratio"]), ("peer", 1.5))
        told = results.statement("peer", own="ours, fast")
        self.assertEqual((told["own"], told["ratio"]), ("ours, fast", 3.0))

    def test_nothing_is_stated_of_a_peer_that_is_not_there(self):
        fake = FakeMachine()
        self.assertIsNone(compared(fake, Scripted(fake, [1.0]), Scripted(fake, [2.0]))[1].statement("someone"))


class Rounds(unittest.TestCase):
    def test_the_order_turns_round_each_time(self):
        fake, calls = FakeMachine(), []
        compared(fake, Scripted(fake, [1.0], calls=calls, name="a"), Scripted(fake, [1.0], calls=calls, name="b"))
        self.assertEqual("".join(calls), "abbaabbaab")

    def test_a_try_says_what_the_machine_did(self):
        fake = FakeMachine()
        one = compared(fake, Scripted(fake, [5.0], stolen_s=[0.01]), Scripted(fake, [5.0]), rounds=1)[0].tries[0]
        self.assertEqual((one["order"], one["load"], one["mhz"]), (["ours", "peer 1"], [0.5, 0.5], [3000.0]))
        self.assertAlmostEqual(one["steal"], 0.001)
        self.assertEqual((one["samples"]["ours"][""]["cpu_s"], one["samples"]["ours"][""]["cpu_share"]), (5.0, 1.0))

    def test_contestants_are_pinned_to_as_many_processors_as_threads(self):
        fake = FakeMachine()
        compared(fake, Scripted(fake, [1.0]), Scripted(fake, [1.0]), threads=2)
        self.assertEqual({tuple(pins) for pins in fake.pins}, {(0, 1)})

    def test_steal_marks_a_round_and_the_repetition_counts(self):
        fake = FakeMachine()
        comparison, results = compared(fake, Scripted(fake, [5.0, 1.0], stolen_s=[0.3, 0.0]), Scripted(fake, [2.0]))
        first, second = comparison.tries[:2]
        self.assertEqual((first["round"], first["try"], first["marks"], first["counts"]), (1, 1, ["steal 4.3%"], False))
        self.assertEqual((second["round"], second["try"], second["marks"], second["counts"]), (1, 2, [], True))
        self.assertTrue(results.established)
        self.assertEqual(results.ratios("peer 1"), [2.0] * 5)
        self.assertEqual(results.statement()["marks"], {"steal": 1})

    def test_steal_below_two_percent_marks_nothing(self):
        fake = FakeMachine()
        comparison, _ = compared(fake, Scripted(fake, [1.0], stolen_s=[0.038]), Scripted(fake, [1.0]))
        self.assertEqual([one["marks"] for one in comparison.tries], [[]] * 5)

    def test_a_thread_that_gets_less_than_its_processor_marks_the_round(self):
        fake = FakeMachine()
        comparison, results = compared(fake, Scripted(fake, [1.0]), Scripted(fake, [2.0], wall_s=[2.2, 2.0]))
        self.assertEqual(comparison.tries[0]["marks"], ["peer 1: CPU/wall 0.91"])
        self.assertEqual(len(comparison.tries), 6)
        self.assertTrue(results.established)

    def test_of_a_difference_the_lesser_share_of_both_counts(self):
        many, few = protocol.Finished("", 9.0, 9.1, 0), protocol.Finished("", 1.0, 1.2, 0)
        sample = many.sample(10, few)
        self.assertEqual((sample.cpu_s, round(sample.wall_s, 6), round(sample.cpu_share, 3)), (8.0, 7.9, 0.833))
        fake = FakeMachine()
        comparison = Comparison("c", "u", [Contestant("ours", lambda: sample)], machine=fake, rounds=1).run()
        self.assertEqual(comparison.tries[0]["marks"], ["ours: CPU/wall 0.83"])

    def test_a_difference_that_nothing_is_left_of_marks_the_round(self):
        fake = FakeMachine()
        nothing = protocol.Finished("", 1.0, 1.0, 0).sample(10, protocol.Finished("", 1.1, 1.1, 0))
        for threads in (1, 2):
            comparison = Comparison("c", "u", [Contestant("ours", lambda: nothing)], machine=fake, rounds=1, threads=threads).run()
            self.assertEqual(comparison.tries[0]["marks"], ["ours: takes no longer than its start-up"])
            self.assertEqual(Results(comparison.state()).marks(), {"no time left": 3})

    def test_three_marked_tries_of_a_round_establish_nothing(self):
        fake = FakeMachine()
        comparison, results = compared(fake, Scripted(fake, [1.0], stolen_s=[0.5]), Scripted(fake, [9.0]))
        # Three of the first round; the others, for their figures, once.
        self.assertEqual([(one["round"], one["try"]) for one in comparison.tries], [(1, 1), (1, 2), (1, 3), (2, 1), (3, 1), (4, 1), (5, 1)])
        told = results.statement(goal=2.0)
        self.assertEqual((told["ratio"], told["established"], told["verdict"]), (9.0, False, "not established"))
        self.assertIn("not established", protocol.section(comparison.state()))

    def test_of_two_threads_wall_time_counts_divided_by_what_a_spin_loop_gains(self):
        fake = FakeMachine()
        # Both are measured where the machine gives 1.5 processors to ours, and 2 to the peer.
        fake.spins = itertools.cycle([machine.Spin(gain, 1.0) for gain in (1.5, 1.5, 2.0, 2.0, 2.0, 2.0, 1.5, 1.5)])
        comparison, results = compared(fake, Scripted(fake, [1.0], wall_s=[4.0]), Scripted(fake, [1.0], wall_s=[3.0]), threads=2)
        self.assertEqual(results.ratios("peer 1"), [1.0] * 5)
        self.assertEqual([one["marks"] for one in comparison.tries], [[]] * 5)

    def test_what_two_threads_gain_over_one_is_divided_by_what_a_spin_loop_gains(self):
        fake = FakeMachine()
        fake.spins = itertools.repeat(machine.Spin(1.6, 1.0))
        contestants = [Contestant("2 threads", Scripted(fake, [1.0], wall_s=[0.625])), Contestant("1 thread", Scripted(fake, [1.0]), threads=1)]
        comparison = Comparison("c", "pieces", contestants, threads=2, machine=fake).run()
        self.assertEqual(Results(comparison.state()).ratios("1 thread"), [1.0] * 5)

    def test_of_two_threads_the_spin_loop_reports_disturbance(self):
        fake = FakeMachine()
        fake.spins = itertools.chain([machine.Spin(1.1, 0.6)], itertools.repeat(machine.Spin(2.0, 1.0)))
        comparison, results = compared(fake, Scripted(fake, [1.0]), Scripted(fake, [1.0]), threads=2)
        self.assertEqual(comparison.tries[0]["marks"], ["spin loop beside ours: CPU/wall 0.60 a thread",
                                                        "spin loop beside ours: gain 1.10 before and 2.00 after"])
        self.assertTrue(results.established)

    def spun(self, *gains, **options):
        """The tries of one round of one contestant of two threads, beside which a spin loop gains so much."""
        fake = FakeMachine()
        fake.spins = itertools.chain([machine.Spin(gain, 1.0) for gain in gains], itertools.repeat(machine.Spin(2.0, 1.0)))
        return Comparison("c", "u", [Contestant("ours", Scripted(fake, [1.0]))], machine=fake, threads=2, rounds=1, **options).run().tries

    def test_the_mean_of_what_a_spin_loop_gains_before_and_after_is_divided_by(self):
        one, = self.spun(1.96, 2.04)
        self.assertEqual((one["marks"], one["spin_gains"]), ([], [2.0]))
        self.assertEqual(one["samples"]["ours"][""]["rate"], 5.0)

    def test_a_gain_that_changes_by_more_than_five_percent_marks_the_round(self):
        tries = self.spun(1.8, 2.0)
        self.assertEqual([one["marks"] for one in tries], [["spin loop beside ours: gain 1.80 before and 2.00 after"], []])
        self.assertEqual(Results({"tries": tries}).marks(), {"gain": 1})

    def test_a_gain_above_the_number_of_threads_marks_the_round(self):
        self.assertEqual(self.spun(2.2, 2.2)[0]["marks"],
                         ["spin loop beside ours: gain 2.20 before and 2.20 after, of 2 threads"])
        self.assertEqual(self.spun(2.05, 2.05)[0]["marks"], [])

    def test_rates_may_be_left_undivided(self):
        one, = self.spun(1.96, 2.04, by_gain=False)
        self.assertEqual(one["samples"]["ours"][""]["rate"], 10.0)

    def test_a_peer_that_fails_is_left_out_and_named(self):
        def fails():
            raise ContestantFailed("no such module")
        fake = FakeMachine()
        comparison, results = compared(fake, Scripted(fake, [1.0]), Scripted(fake, [2.0]), fails)
        self.assertEqual(comparison.failed, {"peer 2": "no such module"})
        self.assertIn("failed: no such module", protocol.section(comparison.state()))

    def test_where_a_mode_of_a_peer_failed_nothing_is_established(self):
        def fails():
            raise ContestantFailed("no answer within 1800 s")
        fake = FakeMachine()
        contestants = [Contestant("ours", Scripted(fake, [1.0])), Contestant("peer, eager", Scripted(fake, [9.0]), "peer"),
                       Contestant("peer, compiled", fails, "peer"), Contestant("other", Scripted(fake, [3.0]))]
        results = Results(Comparison("c", "u", contestants, machine=fake).run().state())
        told = results.statement("peer", goal=2)
        self.assertEqual((told["mode"], told["ratio"], told["verdict"]), ("peer, eager", 9.0, "not established"))
        self.assertEqual(told["failed"], {"peer, compiled": "no answer within 1800 s"})
        self.assertEqual(results.statement("other", goal=2)["verdict"], "holds")
        self.assertEqual(results.statement(goal=2)["verdict"], "not established")

    def test_where_ours_fails_nothing_is_compared(self):
        def fails():
            raise ContestantFailed("gone")
        with self.assertRaises(ContestantFailed):
            compared(FakeMachine(), fails)


class Records(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name) / "out"
        quiet = contextlib.redirect_stderr(io.StringIO())
        quiet.__enter__()
        self.addCleanup(quiet.__exit__, None, None, None)

    def record(self, calls, rounds, kind="amd-avx512", settings=None, microcode="0x1", code=None, cpus=None, may_use=(0, 1),
               peer=None):
        fake = FakeMachine(kind, microcode)
        fake.may_use = set(may_use)
        with contextlib.redirect_stderr(io.StringIO()) as err:
            record = Record(self.out, "Title", "some.sh", machine=fake, code={**CODE, **(code or {})})
            contestants = [Contestant("ours", Scripted(fake, [1.0], calls=calls, name="a")),
                           Contestant("peer", peer or Scripted(fake, [2.0]))]
            record.run(Comparison("c", "pieces", contestants, machine=fake, rounds=rounds, settings=settings, cpus=cpus))
        self.said = err.getvalue()
        return record

    def test_stored_rounds_are_not_measured_again(self):
        calls = []
        self.record(calls, 2)
        self.assertEqual(len(calls), 2)
        record = self.record(calls, 5)
        self.assertEqual(len(calls), 5)
        told = json.loads(self.out.with_suffix(".json").read_text())
        self.assertEqual((told["schema"], [one["round"] for one in told["comparisons"][0]["tries"]]), (protocol.SCHEMA, [1, 2, 3, 4, 5]))
        self.assertEqual(record.results("c").statement(goal=2)["verdict"], "holds")
        self.assertIn("| peer |  | 5 (5 to 5) | 2.00 (2.00 to 2.00) | 1.00 |", self.out.with_suffix(".md").read_text())

    def test_those_of_other_settings_or_of_another_kind_of_processor_are(self):
        calls = []
        self.record(calls, 1)
        self.record(calls, 1, settings={"tokens": 5})
        self.record(calls, 1, kind="intel-amx", settings={"tokens": 5})
        self.assertEqual(len(calls), 3)

    def test_those_of_another_machine_or_of_other_code_start_over_and_say_so(self):
        changes = [({"microcode": "0x2"}, "machine microcode was 0x1, is 0x2"),
                   ({"code": {"programs": "other"}}, "programs was built, is other"),
                   ({"code": {"scripts": "other"}}, "scripts was s, is other"),
                   ({"code": {"peers": {"torch": "2.12"}}}, "peers torch was 2.11, is 2.12"),
                   ({"code": {"peers": {}}}, "peers torch was 2.11, is None"),
                   ({"cpus": [1]}, "c starts over: it was on processors [0]"),
                   ({"may_use": {1}}, "c starts over: it was on processors [0]")]
        for change, said in changes:
            self.out.with_suffix(".json").unlink(missing_ok=True)
            calls = []
            self.record(calls, 1)
            self.record(calls, 1, **change)
            self.assertEqual(len(calls), 2, change)
            self.assertIn(said, self.said)

    def test_a_commit_counts_where_there_are_no_built_programs(self):
        calls = []
        self.record(calls, 1)
        self.record(calls, 1, code={"commit": "def"})
        self.assertEqual(len(calls), 1)
        self.assertEqual(json.loads(self.out.with_suffix(".json").read_text())["commit"], "def")
        self.record(calls, 1, code={"programs": None, "commit": "def"})
        self.record(calls, 1, code={"programs": None, "commit": "fed"})
        self.assertEqual(len(calls), 3)

    def test_what_is_measured_here_has_a_commit_scripts_and_versions(self):
        code = protocol.code_here()
        self.assertEqual(sorted(code), sorted(CODE))
        self.assertTrue(code["commit"] and code["scripts"])

    def test_a_mode_that_failed_is_tried_again_and_where_it_works_the_rounds_start_over(self):
        def fails():
            raise ContestantFailed("killed")
        calls, asked = [], []
        self.record(calls, 2, peer=fails)
        self.assertEqual(len(calls), 2)
        self.record(calls, 2, peer=lambda: asked.append(1) or fails())
        self.assertEqual((len(calls), len(asked)), (2, 1))
        record = self.record(calls, 5)
        self.assertEqual(len(calls), 7)
        self.assertEqual(record.results("c").statement(goal=2)["verdict"], "holds")

    def test_a_row_has_claim_peer_ratio_interval_and_machine(self):
        told = self.record([], 5).results("c").statement(goal=1.5)
        self.assertEqual(protocol.markdown_row("claim", told, {"kind": "k", "model": "m"}),
                         "| claim | peer | 2.00 | 2.00 to 2.00 (94%) | holds | k, m |")


class Commands(unittest.TestCase):
    def test_the_time_of_a_command_is_that_of_its_processes(self):
        done = protocol.run_command(["sh", "-c", "cat; sleep 0.2"], stdin="text")
        self.assertEqual(done.stdout, "text")
        self.assertGreater(done.wall_s, 0.19)
        self.assertLess(done.cpu_s, 0.15)
        spun = protocol.run_command([sys.executable, "-c", "import time\nwhile time.process_time() < 0.2: pass"])
        self.assertGreater(spun.cpu_s, 0.19)

    def test_failures_and_those_that_take_too_long_are_reported(self):
        with self.assertRaisesRegex(ContestantFailed, "sh: gone"):
            protocol.run_command(["sh", "-c", "echo gone >&2; exit 3"])
        with self.assertRaisesRegex(ContestantFailed, "nothing within 0.1 s"):
            protocol.run_command(["sleep", "60"], timeout_s=0.1)

    def test_a_worker_keeps_what_it_has_between_rounds(self):
        program = ("import sys; sys.path.insert(0, sys.argv[1])\nimport protocol\nseen = []\n"
                   "def work(n):\n    seen.append(n); print('noise')\n    _, took = protocol.timed(lambda: sum(range(100000)))\n"
                   "    return {'work': sum(seen), **took}\nprotocol.serve(work)")
        with protocol.Worker([sys.executable, "-c", program, SOURCE / "scripts/compare"]) as worker:
            self.assertEqual([worker.sample(n=n).work for n in (1, 2, 3)], [1, 3, 6])

    def test_a_program_that_has_the_loop_itself_takes_its_requests_one_by_one(self):
        program = ("import sys; sys.path.insert(0, sys.argv[1])\nimport protocol\nrequests = protocol.requests()\n"
                   "for seen in range(2):\n    request, answer = next(requests)\n    print('noise')\n"
                   "    answer({'told': request['n'] + seen})\n"
                   "sys.exit(0 if next(requests, None) is None else 'a third request')")
        with protocol.Worker([sys.executable, "-c", program, SOURCE / "scripts/compare"]) as worker:
            self.assertEqual([worker.ask(n=10)["told"] for _ in range(2)], [10, 11])
            process = worker.process
        self.assertEqual(process.returncode, 0)

    def test_what_a_worker_does_not_report_is_measured_from_outside(self):
        program = ("import sys, time\nfor line in sys.stdin:\n    end = time.process_time() + 0.1\n"
                   "    while time.process_time() < end: pass\n    print('{\"work\": 1}', flush=True)")
        with protocol.Worker([sys.executable, "-c", program]) as worker:
            self.assertAlmostEqual(worker.sample().cpu_s, 0.1, delta=0.08)

    def test_a_worker_that_dies_failed(self):
        with protocol.Worker([sys.executable, "-c", "raise SystemExit('no model')"]) as worker:
            with self.assertRaisesRegex(ContestantFailed, "no model"):
                worker.ask()

    def test_a_worker_that_does_not_answer_failed(self):
        with protocol.Worker([sys.executable, "-c", "import time; time.sleep(60)"], longest_s=0.1) as worker:
            with self.assertRaisesRegex(ContestantFailed, "no answer within 0.1 s"):
                worker.ask()

    def test_losses_that_are_not_those_of_ours_are_told(self):
        self.assertEqual(protocol.loss_differences("c", [3.0, 2.0, 1.0], {"eager": [3.0001, 2.0]}, 1e-3), [])
        far = protocol.loss_differences("c", [3.0, 2.0], {"eager": [3.0, 2.1], "compiled": [float("nan")], "none": []}, 1e-3)
        self.assertEqual([line.split(" of ")[1].split(" are")[0] for line in far], ["eager", "compiled", "none"])
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual((protocol.exit_status([]), protocol.exit_status(far)), (0, 1))

    def test_steps_that_warm_up_are_not_timed(self):
        sample = protocol.timed_steps({"step_times_s": [9, 1, 1], "cpu_times_s": [9, 2, 2], "tokens": [5, 10, 10]}, 1)
        self.assertEqual((sample.work, sample.cpu_s, sample.wall_s), (20, 4, 2))


class SharesOfWhatAMachineCould(unittest.TestCase):
    def test_one_is_judged_by_the_lower_end_of_its_rounds(self):
        shares = [0.85, 0.9, 0.9, 0.9, 0.95]
        self.assertEqual(machine_rates.share_text(shares, 0.85, True), "0.90 (0.85 to 0.95; goal 0.85: holds)")
        self.assertEqual(machine_rates.share_text(shares, 0.86, True), "0.90 (0.85 to 0.95; goal 0.86: misses)")
        self.assertEqual(machine_rates.share_text(shares, 0.85, False), "0.90 (0.85 to 0.95; goal 0.85: not established)")
        self.assertEqual(machine_rates.share_text(shares[:4], 0.85, True), "0.90 (goal 0.85: not established)")


class PrecisionsBesideEachOther(unittest.TestCase):
    """How precisions.py compares bf16 with fp32."""

    def compare(self, bf16_s, fp32_s):
        fake, seconds, self.order = FakeMachine(), {"bf16": bf16_s, "fp32": fp32_s}, []

        def sample(_, name, precision):
            self.order.append(precision)
            fake.time_s += seconds[precision]
            return Sample(10, seconds[precision], seconds[precision])
        options = argparse.Namespace(threads=1, steps=None, rounds=5, tries=1, cpus=None)
        comparison = precisions.comparison_of(options, "2x128", sample, fake).run()
        return precisions.extra_text(argparse.Namespace(states=[comparison.state()]))

    def test_both_take_turns_and_the_order_turns_round(self):
        self.compare(1.0, 1.0)
        self.assertEqual(self.order[:6], ["bf16", "fp32", "fp32", "bf16", "bf16", "fp32"])

    def test_bf16_is_never_slower_where_the_lower_end_says_so(self):
        self.assertIn("| 2x128, bf16 beside fp32, threads 1 | 1.25 (1.25 to 1.25) | holds |", self.compare(0.8, 1.0))
        self.assertIn("| 0.80 (0.80 to 0.80) | misses |", self.compare(1.0, 0.8))

    def test_each_model_is_a_llama_of_the_sizes_in_its_name(self):
        for name in precisions.MODELS:
            config = precisions.config_of(name)
            self.assertEqual(f"{config['num_hidden_layers']}x{config['hidden_size']}", name)
            self.assertEqual(config["hidden_size"] % config["num_attention_heads"], 0)


class Machines(unittest.TestCase):
    def test_kinds_are_named_by_maker_and_widest_unit(self):
        self.assertEqual(machine.kind_of("GenuineIntel", ["amx_bf16", "avx512f", "avx2"]), "intel-amx")
        self.assertEqual(machine.kind_of("AuthenticAMD", ["avx512_bf16", "avx512f", "avx2"]), "amd-avx512")
        self.assertEqual(machine.kind_of("AuthenticAMD", ["avx2"]), "amd-avx2")

    def test_stolen_time_is_apart_from_busy_time(self):
        tick = os.sysconf("SC_CLK_TCK")
        self.assertEqual(machine.seconds_of("cpu0 1 2 3 400 500 6 7 80 9 0"), (19 / tick, 80 / tick))

    def test_a_spin_loop_that_gets_its_processor_too_late_still_counts(self):
        pid = os.fork()  # it pins itself
        if pid == 0:
            loops, _, wall_s = machine.count_until(min(os.sched_getaffinity(0)), 0.0)
            os._exit(0 if loops == 1 and wall_s > 0 else 1)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)

    def test_this_machine_can_be_asked(self):
        own = machine.Machine()
        cpu, = own.choose(1, seconds=0.01)
        before = os.sched_getaffinity(0)
        with own.pinned([cpu]):
            self.assertEqual(os.sched_getaffinity(0), {cpu})
        self.assertEqual(os.sched_getaffinity(0), before)
        spin = own.spin([cpu])
        self.assertGreater(spin.gain, 0)
        self.assertGreater(spin.least_cpu_share, 0)
        self.assertGreaterEqual(own.stolen_s([cpu]), 0)
        self.assertIn("-", own.record()["kind"])


if __name__ == "__main__":
    unittest.main()
