"""The table of claims of scripts/compare/all.sh: what it names exists, and what it makes of measured and missing results.

usage: compare_claims_test.py SOURCE_DIR
"""
import argparse
import contextlib
import dataclasses
import io
import json
import pathlib
import shlex
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(SOURCE / "scripts/compare"))
import claims  # noqa: E402
import train_side_by_side  # noqa: E402

# Building what is built already, and the peers that are there.
MINUTES_OF_A_START = 5
SMALL = ("run\tone\t10\tone.sh --fast\nrun\ttwo\t30\t{python} two.py {data}\n"
         "claim\tfast\tone\tc\t-\t-\tpeer\t2\tLICENSE\tMIT\nclaim\tfaster\tone\tc\twarm\t-\t-\t3\tLICENSE\tMIT\n"
         "claim\tother\ttwo\td\t-\t-\t-\t1\tLICENSE\tMIT\n")


def record_of(rates, marks=(), kind="intel-amx"):
    """OUT.json of a run whose comparison c has ours at 10 in each round and the peer's mode at such rates."""
    def sample(rate):
        return {"": {"work": rate, "cpu_s": 1, "wall_s": 1, "cpu_share": 1.0, "rate": rate}}
    tries = [{"round": number, "try": 1, "counts": True, "marks": list(marks), "load": [0],
              "samples": {"ours": sample(10), "peer, mode": sample(rate)}} for number, rate in enumerate(rates, 1)]
    state = {"name": "c", "settings": {"threads": 1, "unit": "u"}, "ours": "ours", "cpus": [0], "failed": {}, "tries": tries,
             "peers": {"ours": "ours", "peer, mode": "peer"}}
    machine = {"kind": kind, "model": "a processor", "units": [], "processors": 2, "governor": None, "virtual": True}
    return {"date": "2026-01-02", "machine": machine, "notes": "", "commit": "abc", "identity": {"peers": {"torch": "2.11"}},
            "comparisons": [state]}


def train_options(words):
    """Of a command that runs train.sh: its peers and modes."""
    return {name: words[words.index(f"--{name}") + 1].split(",") for name in ("peers", "modes")}


def names_of_contestants(model, peers, modes):
    """Those of train.sh, of which nothing is started."""
    contest = object.__new__(train_side_by_side.Contest)
    contest.options = argparse.Namespace(peers=peers, modes=modes, steps=2, scratch="/scratch", longest_answer=60)
    contest.model, contest.initial, contest.plan = model, "initial", "plan.json"
    return [contestant.name for contestant in contest.contestants(1, [])]


class Table(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.runs, cls.claims = claims.read_table(claims.TABLE.read_text())

    def test_each_claim_names_the_line_that_makes_it(self):
        self.assertGreater(len(self.claims), 25)
        for claim in self.claims.values():
            self.assertRegex(claim.source(), r":\d+$")

    def test_each_run_is_a_script_and_decides_a_claim(self):
        for run in self.runs.values():
            script = next(word for word in shlex.split(run.command) if word.startswith("scripts/"))
            self.assertTrue((SOURCE / script).exists(), script)
            self.assertTrue([claim for claim in self.claims.values() if claim.run == run.name], run.name)

    def test_all_of_them_take_two_hours_and_a_half_at_most(self):
        self.assertLessEqual(sum(run.minutes for run in self.runs.values()), 150)

    def test_two_hours_with_a_start_reach_every_run(self):
        now, done = [0.0], []

        def execute(run, own, store, kind, options, seconds):
            now[0] += 60 * run.minutes
            done.append(run.name)
            return True
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()) as err:
            options = argparse.Namespace(deadline=120, spent=60 * MINUTES_OF_A_START, only=None, again=False, quick=False,
                                         work=pathlib.Path(folder) / "work")
            store = claims.Store(pathlib.Path(folder))
            well = claims.run_all(self.runs, self.claims, store, "intel-amx", options, lambda: now[0], execute)
        self.assertEqual((well, done, err.getvalue()), (True, list(self.runs), ""))

    def test_hugging_faces_trainer_is_compared_compiled_too(self):
        options = train_options(shlex.split(self.runs["trainer"].command))
        self.assertEqual(names_of_contestants("llama", **options), ["train", "HF Trainer, eager", "HF Trainer, compiled"])

    def test_goals_are_those_that_were_agreed(self):
        def goals(*names):
            return [self.claims[name].goals for name in names]
        self.assertEqual(goals("train-fp32", "loader-litdata"), [{"intel": 1.3, "amd": 1.8}, {"intel": 1.3}])
        self.assertEqual(goals("lora-fp32", "lora-bf16", "codec-minilm-encode", "codec-minilm-decode"), [{"": 2.0}] * 4)
        self.assertEqual(goals("unigram-english", "unigram-japanese", "unigram-chinese"), [{"": 10.0}, {"": 4.0}, {"": 4.0}])
        self.assertEqual(goals("train-bf16-over-fp32", "lora-bf16-over-fp32", "pretokenize-into-pack"), [{"": 1.0}] * 2 + [{"": 0.9}])

    def test_a_line_that_is_neither_is_refused(self):
        for line in ("claim\ta\tnone\tc\t-\t-\t-\t1\tLICENSE\tMIT", "run\ta\t1", "else\ta\tb"):
            with self.assertRaisesRegex(ValueError, "claims.tsv:1"):
                claims.read_table(line)

    def test_a_phrase_that_nobody_says_is_refused(self):
        _, small = claims.read_table(SMALL.replace("LICENSE\tMIT", "LICENSE\tno such words here"))
        with self.assertRaisesRegex(ValueError, "does not say"):
            small["fast"].source()


class Results(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.store = claims.Store(pathlib.Path(folder.name))
        text = SMALL.replace("LICENSE\tMIT", "scripts/compare/claims.tsv\tRuns and the claims")
        self.runs, self.claims = claims.read_table(text)
        self.options = argparse.Namespace(deadline=120, only=None, again=False, quick=False, spent=0, data="/d", python=sys.executable,
                                          work=self.store.folder / "work")

    def run_all(self, clock=lambda: 0.0):
        done = []

        def execute(run, own, store, kind, options, seconds):
            done.append((run.name, [claim.name for claim in own], seconds))
            return True
        with contextlib.redirect_stderr(io.StringIO()) as err:
            well = claims.run_all(self.runs, self.claims, self.store, "intel-amx", self.options, clock, execute)
        return well, done, err.getvalue()

    def judge(self, name, record):
        told = claims.judged(self.claims[name], record)
        self.store.write(record["machine"]["kind"], self.claims[name], told)
        return told

    def test_a_claim_is_judged_by_the_lower_end_of_its_peers_interval(self):
        told = self.judge("fast", record_of([5, 4, 4, 4, 4]))
        self.assertEqual((told["mode"], told["low"], told["high"], told["verdict"]), ("peer, mode", 2.0, 2.5, "holds"))
        self.assertEqual(claims.judged(self.claims["fast"], record_of([5.1, 4, 4, 4, 4]))["verdict"], "misses")
        self.assertEqual(claims.judged(self.claims["fast"], record_of([4] * 5, ["steal 3.0%"]))["verdict"], "not established")

    def test_a_run_that_has_nothing_on_a_claim_is_not_well(self):
        record = record_of([4] * 5)
        with contextlib.redirect_stderr(io.StringIO()) as err:
            self.assertTrue(claims.keep([self.claims["fast"]], self.store, "intel-amx", record))
            self.assertFalse(claims.keep([self.claims["fast"], self.claims["faster"]], self.store, "intel-amx", record))
        self.assertIn("one has nothing on faster", err.getvalue())
        self.assertEqual([path.name for path in self.store.folder.rglob("*.json")], ["fast.json"])

    def test_what_a_run_does_not_have_is_not_judged(self):
        self.assertIsNone(claims.judged(self.claims["other"], record_of([4] * 5)))
        self.assertIsNone(claims.judged(self.claims["faster"], record_of([4] * 5)))

    def test_kinds_of_processors_are_side_by_side_and_the_missing_one_is_named(self):
        self.judge("fast", record_of([4] * 5))
        text = claims.table_of(self.claims, self.store)
        self.assertIn("| claim | peer | goal | source | intel-amx | amd |", text)
        self.assertIn("| holds: 2.50 (2.50 to 2.50) of peer, mode, 2026-01-02, abc | not measured |", text)
        self.assertIn("- intel-amx: 2 processors of an a processor (intel-amx; no wide units, virtual). 1 holds, 2 not measured.", text)
        self.judge("fast", record_of([10] * 5, kind="amd-avx512"))
        text = claims.table_of(self.claims, self.store)
        self.assertIn("| amd-avx512 | intel-amx |", text)
        self.assertIn("| misses: 1.00 (1.00 to 1.00) of peer, mode, 2026-01-02, abc | holds: 2.50", text)

    def test_a_stored_result_is_judged_by_the_goal_of_its_line(self):
        self.judge("fast", record_of([4] * 5))
        self.claims["fast"] = dataclasses.replace(self.claims["fast"], goals={"": 3.0})
        text = claims.table_of(self.claims, self.store)
        self.assertIn("| 3 | scripts/compare/claims.tsv:1 | misses: 2.50", text)
        self.assertIn("1 misses, 2 not measured.", text)

    def test_a_stored_result_of_another_comparison_than_its_line_names_is_none(self):
        self.judge("fast", record_of([4] * 5))
        for change in ({"comparison": "d"}, {"aspect": "cold"}, {"own": "theirs"}, {"peer": "another"}):
            changed = self.claims | {"fast": dataclasses.replace(self.claims["fast"], **change)}
            self.assertNotIn("2.50", claims.table_of(changed, self.store))
            self.assertIn(changed["fast"], claims.due(self.runs, changed, self.store, "intel-amx", self.options)[0][1])
        self.assertNotIn(self.claims["fast"], claims.due(self.runs, self.claims, self.store, "intel-amx", self.options)[0][1])

    def test_what_is_measured_is_not_measured_again_unless_asked(self):
        for name in ("fast", "faster"):
            told = claims.judged(self.claims["fast"], record_of([4] * 5)) | {"aspect": self.claims[name].aspect}
            self.store.write("intel-amx", self.claims[name], told)
        self.assertEqual(self.run_all()[1], [("two", ["other"], 2700)])
        self.options.again = True
        self.assertEqual([name for name, _, _ in self.run_all()[1]], ["one", "two"])

    def stored_again(self, **options):
        """What a claim of each run and a run's OUT.json are after such options, and what was run."""
        for name in ("fast", "other"):
            self.store.write("intel-amx", self.claims[name], claims.judged(self.claims["fast"], record_of([4] * 5)))
        out = self.options.work / "intel-amx/one.json"
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text("{}")
        vars(self.options).update(options)
        done = [name for name, _, _ in self.run_all()[1]]
        return [self.store.read("intel-amx", self.claims[name]) is not None for name in ("fast", "other")] + [out.exists()], done

    def test_again_begins_by_removing_what_is_stale(self):
        self.assertEqual(self.stored_again(again=True, only=["one"]), ([False, True, False], ["one"]))
        self.options.again = False  # what was stopped is gone on with
        self.assertEqual([name for name, _, _ in self.run_all()[1]], ["one"])

    def test_a_quick_look_runs_all_and_leaves_results_alone(self):
        self.assertEqual(self.stored_again(quick=True, again=True), ([True, True, True], ["one", "two"]))
        self.assertFalse((self.store.folder / "claims.md").exists())

    def test_a_quick_run_starts_from_nothing_and_keeps_nothing(self):
        script = "import os, sys; assert not os.path.exists(sys.argv[-1] + '.json'); open(sys.argv[-1] + '.json', 'w').write('{}')"
        self.options.quick = True
        for _ in range(2):
            self.assertEqual(self.run_script(script), (True, None))

    def test_a_claim_whose_peer_failed_in_a_mode_is_due_again(self):
        record = record_of([4] * 5)
        state = record["comparisons"][0]
        state["peers"]["peer, compiled"], state["failed"] = "peer", {"peer, compiled": "killed"}
        with contextlib.redirect_stderr(io.StringIO()) as err:
            self.assertFalse(claims.keep([self.claims["fast"]], self.store, "intel-amx", record))
        self.assertIn("fast: not established: peer, compiled failed: killed", err.getvalue())
        self.assertIn("| not established (peer, compiled failed): 2.50", claims.table_of(self.claims, self.store))
        self.assertEqual(self.run_all()[1][0][:2], ("one", ["fast", "faster"]))

    def test_what_is_stored_of_a_claim_names_commit_and_peers(self):
        told = self.judge("fast", record_of([4] * 5))
        self.assertEqual((told["commit"], told["peers"]), ("abc", {"torch": "2.11"}))

    def test_goals_may_differ_by_maker(self):
        text = SMALL.replace("-\tpeer\t2\t", "-\tpeer\tintel:1.3,amd:3\t").replace("-\t-\t3\t", "-\t-\tintel:1.3\t")
        _, found = claims.read_table(text)
        self.assertEqual((found["fast"].goal("intel-amx"), found["fast"].goal("amd-avx2"), found["faster"].goal("amd-avx2")),
                         (1.3, 3.0, None))
        self.assertEqual((found["fast"].goal_text(), found["other"].goal_text()), ("intel 1.3, amd 3", "1"))
        self.claims["fast"] = dataclasses.replace(self.claims["fast"], goals=found["fast"].goals)
        self.assertEqual(claims.judged(self.claims["fast"], record_of([4] * 5))["verdict"], "holds")
        self.assertEqual(claims.judged(self.claims["fast"], record_of([4] * 5, kind="amd-avx512"))["verdict"], "misses")
        self.claims["fast"] = dataclasses.replace(self.claims["fast"], goals={"amd": 2.0})
        self.assertEqual(claims.judged(self.claims["fast"], record_of([4] * 5))["verdict"], "no goal")
        with self.assertRaisesRegex(ValueError, "makers"):
            claims.read_table(SMALL.replace("peer\t2\t", "peer\tvia:2\t"))

    def test_results_of_another_kind_of_processor_leave_it_due(self):
        self.store.write("amd-avx512", self.claims["other"], claims.judged(self.claims["fast"], record_of([4] * 5)))
        self.assertEqual([name for name, _, _ in self.run_all()[1]], ["one", "two"])

    def test_no_run_is_started_that_the_time_left_is_too_short_for(self):
        self.options.deadline = 40
        ticks = iter([0, 0, 11 * 60])
        well, done, err = self.run_all(lambda: next(ticks))
        self.assertEqual(done, [("one", ["fast", "faster"], 900)])
        self.assertFalse(well)
        self.assertIn("two: takes 30 minutes, and 29 are left", err)

    def test_the_deadline_counts_from_where_all_sh_began(self):
        self.options.deadline, self.options.spent = 40, 28 * 60
        self.assertEqual([(name, seconds) for name, _, seconds in self.run_all()[1]], [("one", 720)])

    def test_only_takes_names_of_runs_and_of_claims(self):
        self.options.only = ["faster"]
        self.assertEqual([(name, own) for name, own, _ in self.run_all()[1]], [("one", ["faster"])])
        self.options.only = ["two"]
        self.assertEqual([name for name, _, _ in self.run_all()[1]], ["two"])
        self.options.only = ["three"]
        with self.assertRaisesRegex(ValueError, "three"):
            self.run_all()

    def run_script(self, script, seconds=60):
        """Whether a run of this program ended well, and the claims that it left; OUT is its first argument."""
        run = claims.Run("one", 1, shlex.join(["{python}", "-c", script]))
        with contextlib.redirect_stderr(io.StringIO()):
            well = claims.run_one(run, [self.claims["fast"]], self.store, "intel-amx", self.options, seconds)
        return well, self.store.read("intel-amx", self.claims["fast"])

    def test_a_run_leaves_its_claims_and_a_log(self):
        script = f"import sys; print('log'); open(sys.argv[1] + '.json', 'w').write({json.dumps(json.dumps(record_of([4] * 5)))})"
        well, told = self.run_script(script)
        self.assertEqual((well, told["verdict"]), (True, "holds"))
        self.assertEqual((self.options.work / "intel-amx/one.log").read_text(), "log\n")

    def test_nothing_is_kept_of_one_that_failed_or_was_stopped(self):
        write = f"import sys, time; open(sys.argv[1] + '.json', 'w').write({json.dumps(json.dumps(record_of([4] * 5)))})"
        self.assertEqual(self.run_script(write + "; sys.exit(1)"), (False, None))
        self.assertEqual(self.run_script(write + "; time.sleep(60)", 1), (False, None))

    def test_commands_have_the_places_of_this_machine_and_end_with_out(self):
        options = argparse.Namespace(data="/d", python="/p", quick=True)
        self.assertEqual(claims.command_of(self.runs["two"], "/o", options), ["/p", "two.py", "/d", "--rounds", "1", "--tries", "1", "/o"])

    def test_the_table_is_written_where_the_results_are(self):
        claims.write_table(self.claims, self.store)
        self.assertIn("not measured", (self.store.folder / "claims.md").read_text())


class PeersOfTraining(unittest.TestCase):
    def test_a_peer_is_compared_in_each_mode_that_is_asked_for(self):
        self.assertEqual(names_of_contestants("llama", ["pytorch", "hf"], ["eager", "max-autotune"]),
                         ["train", "PyTorch, eager", "PyTorch, max-autotune", "HF Trainer, eager", "HF Trainer, max-autotune"])

    def test_hugging_faces_trainer_has_the_llama_alone(self):
        self.assertEqual(names_of_contestants("nanogpt", ["pytorch", "hf"], ["eager"]), ["train", "PyTorch, eager"])


class SameWork(unittest.TestCase):
    """What makes a run fail whose contestants did not do the same work."""

    def test_ids_must_be_the_references(self):
        import tokenize_side_by_side as side_by_side
        same = [["trainwright", 5, "a"], ["reference", 5, "a"], ["tiktoken", 5, "a"], ["absent", 0, "no such module"]]
        self.assertEqual(side_by_side.differences({"gpt2, english-32MB": same}), [])
        self.assertEqual(side_by_side.differences({"gpt2, code-16MB": same[:2] + [["tiktoken", 6, "b"]]}), [])
        self.assertEqual(len(side_by_side.differences({"gpt2, english-32MB": same[:2] + [["tiktoken", 6, "b"]]})), 1)
        self.assertEqual(len(side_by_side.differences({"gpt2, english-32MB": [["trainwright", 5, "b"], *same[1:]]})), 1)
        self.assertEqual(len(side_by_side.differences({"gpt2, english-32MB": [same[0], ["reference", 0, "gone"]]})), 1)

    def test_first_losses_of_training_must_be_ours(self):
        import lora
        for module, name in ((train_side_by_side, "llama, fp32, threads 1"), (lora, "fp32-nf4, threads 1")):
            for key in ("first_losses", "first losses"):
                record = argparse.Namespace(extra={key: {name: {"train": [10.0, 9.0], "peer": [10.0, 9.001]}}})
                self.assertEqual(module.differences(record), [])
            record.extra = {key: {name: {"train": [10.0, 9.0], "peer": [10.0, 9.02]}} for key in ("first_losses", "first losses")}
            self.assertEqual(len(module.differences(record)), 1)

    def test_tokens_must_be_ours_as_far_as_rounding_decides_none(self):
        import generate_side_by_side

        def differing(precision, own, theirs):
            samples = {who: {"": {"rate": 1, "ids": ids}} for who, ids in (("generate", own), ("transformers, eager", theirs))}
            state = {"name": f"{precision}, batch 2, threads 1", "ours": "generate", "failed": {}, "peers": dict.fromkeys(samples),
                     "tries": [{"round": 1, "counts": True, "marks": [], "samples": samples}]}
            return generate_side_by_side.differences(argparse.Namespace(states=[state]))
        self.assertEqual(differing("fp32", [[1, 2], [3, 4]], [[1, 2], [3, 4]]), [])
        self.assertEqual(len(differing("fp32", [[1, 2], [3, 4]], [[1, 2], [3, 5]])), 1)
        self.assertEqual(differing("bf16", [[1, 2], [3, 4]], [[1, 5], [3, 5]]), [])
        self.assertEqual(len(differing("bf16", [[1, 2], [3, 4]], [[1, 2], [5, 4]])), 1)


if __name__ == "__main__":
    unittest.main()
