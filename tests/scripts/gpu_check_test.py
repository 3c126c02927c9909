#!/usr/bin/env python3
"""What scripts/gpu-check.sh promises, without a GPU: its steps run on the CPU with tiny sizes (--dry-run), and its runner with
stand-in steps. gpu_check_device_test.py runs it where a GPU is played, gpu_check_bundle_test.py makes bundles.

usage: gpu_check_test.py SOURCE_DIR BUILD_DIR
"""
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

BUILD = pathlib.Path(sys.argv.pop(2)).resolve()
SOURCE = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(SOURCE / "scripts/gpu_check"))
sys.dont_write_bytecode = True
import bundle  # noqa: E402
import runner  # noqa: E402
import steps  # noqa: E402

STEPS = [step.name for step in steps.STEPS]
# What a machine without a GPU, without PyTorch in python3 and without a CUDA toolkit lacks.
MAY_LACK = {"gemm_shapes", "attention_shapes", "pytorch_eager", "pytorch_compiled", "memcheck", "racecheck"}


def records(out):
    lines = out / "steps.jsonl"
    return [json.loads(line) for line in lines.read_text().splitlines()] if lines.exists() else []


def runs(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().split()[2] not in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return False


class Scratch(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.out = self.folder / "out"


class DryRun(Scratch):
    build, device, environment = BUILD, "cpu", {}

    def check(self, *arguments):
        return subprocess.run([SOURCE / "scripts/gpu-check.sh", "--dry-run", "--dry-run-device", self.device, "--build", self.build,
                               "--out", self.out, *arguments],
                              text=True, capture_output=True, check=False, timeout=600, stdin=subprocess.DEVNULL,
                              env=os.environ | self.environment)

    def check_trace_and_reruns(self, figures):
        """\\param figures of the steps, by name"""
        reruns, trace = figures["reruns"], figures["kernel_trace"]
        self.assertTrue(reruns["reruns_equal"] and reruns["resumed_equal"])
        self.assertGreater(reruns["step_time_s"], 0)
        self.assertAlmostEqual(reruns["cost_of_determinism"],
                               reruns["deterministic_step_time_s"] / reruns["step_time_s"] - 1, places=3)
        self.assertEqual(trace["steps"], 3)
        self.assertGreater(trace["shares"]["gemm"], 0)
        self.assertAlmostEqual(sum(trace["shares"].values()), 1, places=2)
        self.assertIn("traceEvents", json.loads((self.out / trace["trace"]).read_text()))


class DryRunTest(DryRun):
    def test_every_step_runs_and_none_twice(self):
        first = self.check("--only", "identity,reruns", "--skip", "reruns")
        self.assertEqual((first.returncode, [r["step"] for r in records(self.out)]), (0, ["identity"]), first.stderr)
        whole = self.check()
        told = records(self.out)
        self.assertEqual([r["step"] for r in told], STEPS, whole.stdout + whole.stderr)
        broken = [r for r in told if r["status"] != "passed" and not (r["status"] == "not_available" and r["step"] in MAY_LACK)]
        self.assertEqual((broken, whole.returncode), ([], 0), whole.stdout)
        by_name = {record["step"]: record["figures"] for record in told}
        self.assertGreater(by_name["gpt2_124m"]["tokens_per_s"], 0)
        self.assertEqual(by_name["loss_parity"]["cpu_loss_nats"], by_name["loss_parity"]["gpu_loss_nats"])
        self.check_trace_and_reruns(by_name)
        self.assertLessEqual(len(list(self.out.rglob("*"))), 8)
        self.assertIn("| gpt2_124m | passed |", (self.out / "report.md").read_text())
        before = (self.out / "steps.jsonl").read_bytes()
        again = self.check()
        self.assertEqual((again.returncode, (self.out / "steps.jsonl").read_bytes()), (0, before))

    def test_after_the_deadline_nothing_begins(self):
        result = self.check("--deadline", "0")
        self.assertEqual((result.returncode, records(self.out)), (1, []), result.stdout)

    def test_a_step_that_there_is_not_is_refused_with_those_that_there_are(self):
        result = self.check("--only", "gpt3")
        self.assertEqual(result.returncode, 2)
        self.assertIn("there is no step gpt3", result.stderr)
        self.assertIn("loss_parity", result.stderr)

    def test_the_list_ends_with_the_sum_of_the_limits_of_what_is_chosen(self):
        for chosen, options in ((STEPS, []), (["reruns", "memcheck"], ["--only", "reruns,memcheck"])):
            listed = [line.split() for line in self.check("--list", *options).stdout.splitlines()]
            self.assertEqual([words[0] for words in listed], [*chosen, "in"])
            self.assertEqual(listed[-1][:2] + listed[-1][3:], ["in", "all", "s", "at", "most"])
            self.assertEqual(int(listed[-1][2]), sum(int(words[1]) for words in listed[:-1]))

    @unittest.skipIf(list(pathlib.Path("/dev").glob("nvidia[0-9]*")), "this machine has a GPU")
    def test_without_a_gpu_nothing_runs(self):
        result = subprocess.run([SOURCE / "scripts/gpu-check.sh", "--build", BUILD, "--out", self.out], text=True,
                                capture_output=True, check=False, timeout=60)
        self.assertEqual((result.returncode, records(self.out)), (5, []))
        self.assertIn("no GPU: NOT RUN", result.stderr)


class ProfileFiguresTest(unittest.TestCase):
    def test_of_a_gpu_they_are_the_gpus(self):
        def parts(gemm, norm):
            return {"gemm": {"time_s": gemm, "share": gemm}, "norm": {"time_s": norm, "share": norm},
                    "scan": {"time_s": 0, "share": 0}}

        def longest(name):
            return [{"name": name, "part": "gemm", "calls": 1, "self_time_s": 0.5, "time_s": 0.5, "operations": 0}]

        record = {"first_step": 3, "last_step": 5, "wall_time_s": 2.0, "gemm": {"operations": 10, "operations_per_s": 5e12},
                  "parts": parts(0.1, 0.9), "operators": longest("matmul"),
                  "device": {"busy_time_s": 1.5, "idle_share": 0.25, "parts": parts(0.75, 0.25), "kernels": longest("nvjet")}}
        self.assertEqual(steps.profile_figures(record),
                         {"steps": 3, "wall_time_s": 2.0, "busy_share": 0.75, "gemm_tflops": 5.0,
                          "shares": {"gemm": 0.75, "norm": 0.25}, "longest_s": {"nvjet": 0.5}})
        record["device"] = None
        self.assertEqual(steps.profile_figures(record),
                         {"steps": 3, "wall_time_s": 2.0, "gemm_tflops": 5.0, "shares": {"gemm": 0.1, "norm": 0.9},
                          "longest_s": {"matmul": 0.5}})


class SpeedTest(Scratch):
    def test_the_first_third_of_the_records_is_left_out_as_warm_up_and_told(self):
        records = [{"step": 2 * n, "tokens_per_s": 10 * n, "model_flops_per_s": 1e12 * n, "step_time_s": 1 / n, "loss_nats": 9 - n,
                    "max_memory_bytes": 100 + n, "max_device_memory_bytes": 1000 + n} for n in range(1, 7)]
        figures = steps.speed(records, {"parameters": 7})
        self.assertEqual((figures["warm_up_steps"], figures["measured_steps"]), (4, 8))
        self.assertEqual((figures["tokens_per_s"], figures["tflops"]), (45, 4.5))  # medians of 3 to 6
        self.assertEqual((figures["loss_nats"], figures["parameters"]), (3, 7))

    def test_a_run_without_a_record_to_leave_out_has_failed(self):
        record = {"step": 10, "tokens_per_s": 1, "model_flops_per_s": 1, "step_time_s": 1, "loss_nats": 1, "max_memory_bytes": 1}
        with self.assertRaisesRegex(runner.StepFailed, "of 2 records of steps none can be left out"):
            steps.speed([record] * 2, {"parameters": 7})

    def test_memory_is_told_of_the_device_as_pytorchs_is_and_of_the_host(self):
        record = {"step": 1, "tokens_per_s": 1, "model_flops_per_s": 1, "step_time_s": 1, "loss_nats": 1, "max_memory_bytes": 5}
        on_gpu = steps.speed([record | {"max_device_memory_bytes": 8}] * 3, {"parameters": 7})
        self.assertEqual((on_gpu["max_memory_bytes"], on_gpu["max_host_memory_bytes"]), (8, 5))
        on_cpu = steps.speed([record] * 3, {"parameters": 7})
        self.assertEqual((on_cpu["max_memory_bytes"], on_cpu["max_host_memory_bytes"]), (None, 5))
        self.assertIn('"max_memory_bytes": torch.cuda.max_memory_allocated()',
                      (SOURCE / "scripts/gpu_check/torch_gpt2.py").read_text())

    def test_every_run_whose_speed_is_measured_has_six_records(self):
        measured = []

        def train(_, name, model, seq, batch, count, *options, **__):
            every = int(options[options.index("--log-every") + 1])
            measured.append((name, -(-count // every)))
            return [{"step": n, "tokens_per_s": 1, "model_flops_per_s": 1, "step_time_s": 1, "loss_nats": 1, "max_memory_bytes": 1}
                    for n in range(1, measured[-1][1] + 1)], {"parameters": 7}

        settings = runner.Settings(*[self.folder] * 5)
        with unittest.mock.patch.object(steps, "train", train):
            for name in ("gpt2_124m", "gpt2_124m_again", "llama_1b_8k", "llama_8b_layers_8k", "llama_1b_32k", "llama_8b_layers_32k",
                         "gpt2_1558m", "ten_small_32k"):
                self.assertGreater(getattr(steps, name)(unittest.mock.Mock(settings=settings))["warm_up_steps"], 1, name)
        self.assertEqual(len(measured), 8)
        for name, count in measured:
            self.assertGreaterEqual(count, 6, name)


class GpuTestsTest(Scratch):
    def told(self, texts, **settings):
        """Of test programs that print these."""
        for name in texts:
            (self.folder / name).touch()
        stand = unittest.mock.Mock(settings=runner.Settings(*[self.folder] * 5, **settings),
                                   test_program=lambda name: str(self.folder / name),
                                   run=lambda program, *_, **__: (0, texts[program.name]))
        return steps.gpu_tests(stand)

    def test_where_the_time_ends_what_it_has_come_to_is_told(self):
        class Texts(dict):
            def __missing__(self, name):
                raise runner.OutOfTime(f"{name} did not end in time")

        (self.folder / bundle.TESTS[1]).touch()
        with self.assertRaisesRegex(runner.OutOfTime, f"^{bundle.TESTS[1]} did not end in time$") as ended:
            self.told(Texts({bundle.TESTS[0]: "[  PASSED  ] 3 tests.\n"}))
        self.assertEqual(ended.exception.figures, {bundle.TESTS[0]: {"passed": 3, "skipped": 0, "failed": []}})

    def test_a_program_without_a_case_for_a_gpu_has_failed(self):
        texts = {name: "[  PASSED  ] 3 tests.\n" for name in bundle.TESTS}
        self.assertEqual(self.told(texts)["without_a_case_that_ran"], [])
        texts["train_test"] = "[  PASSED  ] 0 tests.\n"
        for device in ("cpu", "cuda"):
            with self.assertRaisesRegex(runner.StepFailed, "1 failed: train_test has no case for a GPU"):
                self.told(texts, device=device)

    def test_a_program_that_skips_all_its_cases_on_a_gpu_has_failed(self):
        texts = {name: "[  PASSED  ] 3 tests.\n" for name in bundle.TESTS} | {
            "device_test": "[  PASSED  ] 0 tests.\n[  SKIPPED ] 3 tests, listed below:\n"}
        with self.assertRaisesRegex(runner.StepFailed, "of device_test all cases were skipped"):
            self.told(texts)
        self.assertEqual(self.told(texts, device="cpu")["without_a_case_that_ran"], ["device_test"])


class FeaturesTest(Scratch):
    def features_of(self, gpu_losses, moved=3, still=(9, 9, 9)):
        """Where the CPU's losses fall by `moved`, or without updates are `still`, and checkpoints' use is as on the CPU."""
        cpu_losses = [9, 9 - moved / 2, 9 - moved]

        def train(_, name, *__, **___):
            losses = gpu_losses(cpu_losses) if name.endswith("-gpu") else still if name.startswith("still") else cpu_losses
            return [{"loss_nats": loss} for loss in losses], {}

        def printed(_, tool, *__):
            return [{"loss_nats": 4.0}] * 2 if tool == "evaluate" else [{"logprobs": [-3.0] * 8, "ids": [1] * 8}] * 2

        stand = unittest.mock.Mock(settings=runner.Settings(*[self.folder] * 5))
        with unittest.mock.patch.multiple(steps, train=train, printed=printed):
            return steps.features(stand)

    def test_losses_near_the_cpus_pass(self):
        figures = self.features_of(lambda losses: [loss * 1.001 for loss in losses])
        self.assertEqual(len(figures), len(steps.FEATURES) + 2)

    def test_a_gpu_that_updates_nothing_or_loses_its_numbers_fails_each(self):
        for losses in (lambda _: [9, 9, 9], lambda _: [9, 7.5, float("nan")], lambda _: [9, 7.5, None], lambda cpu: cpu[:2],
                       lambda _: []):
            with self.assertRaises(runner.StepFailed) as failed:
                self.features_of(losses)
            for name, _, _ in steps.FEATURES:
                self.assertIn(f"{name}: [9, 7.5, 6", str(failed.exception))
                self.assertIn(name, failed.exception.figures)

    def test_probabilities_that_are_missing_on_both_devices_differ(self):
        self.assertEqual(steps.difference([], []), math.inf)
        self.assertEqual(steps.difference([None], [1.0]), math.inf)
        self.assertEqual(steps.difference([2.0, 4.0], [2.0, 5.0]), 0.25)

    def test_where_the_time_ends_what_it_has_come_to_is_told(self):
        def losses(cpu):
            if len(asked) == 2:
                raise runner.OutOfTime("train did not end in time")
            asked.append(cpu)
            return [9, 9, 9]

        asked = []
        with self.assertRaises(runner.OutOfTime) as ended:
            self.features_of(losses)
        one, two = (name for name, _, _ in steps.FEATURES[:2])
        self.assertEqual(list(ended.exception.figures), [one, two])
        self.assertRegex(str(ended.exception), rf"^train did not end in time; {one}: \[9, .*; {two}: \[9, ")

    def test_updates_that_change_no_loss_tell_nothing_and_fail(self):
        with self.assertRaisesRegex(runner.StepFailed, r"adamw8bit: without updates losses are \[9, 9, 9\], .*: too near to tell"):
            self.features_of(lambda losses: losses, moved=0.1)

    def test_a_run_without_updates_that_gives_no_losses_tells_nothing_and_fails(self):
        for still in ((), (9, 9, None), (9, 9, math.nan)):
            with self.assertRaisesRegex(runner.StepFailed, "adamw8bit: without updates losses are"):
                self.features_of(lambda losses: losses, still=still)


class FirstStepsTest(Scratch):
    def test_where_the_time_ends_what_it_has_come_to_is_told(self):
        def train(_, name, *__, **___):
            if name.startswith("first-qwen2"):
                raise runner.OutOfTime("train did not end in time")
            return [{"loss_nats": loss} for loss in ([] if name.endswith("fp16") else [3, 2, 1])], {}

        stand = unittest.mock.Mock(settings=runner.Settings(*[self.folder] * 5))
        with unittest.mock.patch.object(steps, "train", train), self.assertRaises(runner.OutOfTime) as ended:
            steps.first_steps(stand)
        self.assertEqual(ended.exception.figures, {"llama-1m no": 1, "llama-1m bf16": 1, "llama-1m fp16": None})
        self.assertEqual(str(ended.exception), "train did not end in time; llama-1m fp16: losses []")


class SanitizerTest(unittest.TestCase):
    def test_a_run_of_no_case_has_failed(self):
        told = {}

        class Stand:
            settings = runner.Settings(*[None] * 5)
            test_program = staticmethod(str)
            run = staticmethod(lambda *_, **__: (0, told["text"]))

        with unittest.mock.patch("shutil.which", return_value="compute-sanitizer"):
            told["text"] = "[  PASSED  ] 2 tests.\n========= ERROR SUMMARY: 0 errors\n"
            self.assertEqual(steps.memcheck(Stand), {"summary": "ERROR SUMMARY: 0 errors", "passed": 2})
            told["text"] = "[  PASSED  ] 0 tests.\n========= ERROR SUMMARY: 0 errors\n"
            with self.assertRaisesRegex(runner.StepFailed, "no case ran under it"):
                steps.memcheck(Stand)

    def test_where_it_refuses_the_device_it_is_not_available(self):
        def stand(text):
            return unittest.mock.Mock(settings=runner.Settings(*[None] * 5), run=lambda *_, **__: (1, text))

        with unittest.mock.patch("shutil.which", return_value="compute-sanitizer"):
            with self.assertRaisesRegex(runner.NotAvailable, "does not support this device"):
                steps.racecheck(stand("========= Error: Device not supported. Please refer to the documentation\n"))
            with self.assertRaisesRegex(runner.StepFailed, "status 1: a hazard"):
                steps.racecheck(stand("a hazard"))


class RunnerTest(Scratch):
    def run_steps(self, chosen, deadline_s=None):
        settings = runner.Settings(root=BUILD, data=SOURCE / "examples/data/tinyshakespeare.txt", fixtures=SOURCE / "tests",
                                   out=self.out, work=self.folder / "work", deadline_s=deadline_s)
        whole = runner.Runner(settings).run_all(chosen)
        return whole, {record["step"]: record["status"] for record in records(self.out)}

    def test_what_comes_of_a_step_is_told_and_the_next_one_runs(self):
        def fails(_):
            raise runner.StepFailed("no", {"loss": 1})

        def lacks(_):
            raise runner.NotAvailable("no GPU")

        def breaks(_):
            return {}["figure"]

        chosen = [runner.Step("fails", 5, fails), runner.Step("lacks", 5, lacks), runner.Step("breaks", 5, breaks),
                  runner.Step("ends_with_3", 5, lambda r: r.run("bash", "-c", "echo words; exit 3")),
                  runner.Step("passes", 5, lambda r: {"figure": 1})]
        whole, statuses = self.run_steps(chosen)
        self.assertFalse(whole)
        self.assertEqual(statuses, {"fails": "failed", "lacks": "not_available", "breaks": "failed", "ends_with_3": "failed",
                                    "passes": "passed"})
        told = {record["step"]: record for record in records(self.out)}
        self.assertEqual(told["fails"]["figures"], {"loss": 1})
        self.assertIn("bash ended with status 3: words", told["ends_with_3"]["problem"])

    def test_figures_of_a_step_whose_time_ends_are_written(self):
        def ends(_):
            raise runner.OutOfTime("train did not end in time", {"loss": 1})

        self.run_steps([runner.Step("ends", 5, ends)])
        self.run_steps([runner.Step("is_cut_off", 5, ends)], deadline_s=4)
        self.assertEqual([(r["step"], r["status"], r["figures"], r["problem"]) for r in records(self.out)],
                         [(name, status, {"loss": 1}, "train did not end in time")
                          for name, status in (("ends", "failed"), ("is_cut_off", "cut_off"))])

    def test_numbers_that_json_has_no_word_for_are_null(self):
        figures = {"parity": {"gpu": math.nan, "difference": math.inf}, "losses": [1.5, -math.inf], "steps": 3}
        self.run_steps([runner.Step("step", 5, lambda _: figures)])
        told = json.loads((self.out / "steps.jsonl").read_text(), parse_constant=self.fail)
        self.assertEqual(told["figures"], {"parity": {"gpu": None, "difference": None}, "losses": [1.5, None], "steps": 3})

    def test_a_step_that_outruns_its_own_limit_has_failed_with_all_that_it_started(self):
        began = time.monotonic()
        step = runner.Step("sleeps", 5, lambda r: r.run("bash", "-c", 'sleep 60 & echo $! > "$0"; wait', self.folder / "pid"))
        whole, statuses = self.run_steps([step])
        self.assertEqual((whole, statuses), (False, {"sleeps": "failed"}))
        child = int((self.folder / "pid").read_text())
        while runs(child) and time.monotonic() - began < 30:  # it was killed, and ends when it next gets a processor
            time.sleep(0.01)
        self.assertLess(time.monotonic() - began, 30)

    def test_what_is_made_once_is_made_again_where_the_deadline_cut_it_off(self):
        made = []

        def step(r):
            def make(path):
                path.mkdir()
                made.append(path)
                r.run("sleep", "60" if len(made) == 1 else "0")
                (path / "last").touch()

            return {"whole": all((r.once("shards", make) / "last").exists() for _ in range(2))}

        chosen = [runner.Step("makes", 60, step)]
        self.assertEqual(self.run_steps(chosen, deadline_s=2), (False, {"makes": "cut_off"}))
        self.assertEqual(self.run_steps(chosen), (True, {"makes": "passed"}))
        self.assertEqual((len(made), records(self.out)[-1]["figures"]), (2, {"whole": True}))

    def test_a_step_that_the_deadline_cut_off_runs_again_and_no_other(self):
        runs = []

        def quick(_):
            runs.append("quick")

        def long_at_first(r):
            runs.append("long")
            r.run("sleep", "60" if runs.count("long") == 1 else "0")

        chosen = [runner.Step("quick", 60, quick), runner.Step("long", 60, long_at_first)]
        whole, statuses = self.run_steps(chosen, deadline_s=3)
        self.assertEqual((whole, statuses), (False, {"quick": "passed", "long": "cut_off"}))
        whole, statuses = self.run_steps(chosen)
        self.assertEqual((whole, statuses, runs), (True, {"quick": "passed", "long": "passed"}, ["quick", "long", "long"]))


if __name__ == "__main__":
    unittest.main()
