#!/usr/bin/env python3
"""The whole of scripts/gpu-check.sh where a GPU is played: its dry run on the device whose memory no host may touch.

usage: gpu_check_device_test.py SOURCE_DIR BUILD_DIR

The programs of torch's device are those that compute on it (tests/refusing_device). What else a machine with a GPU has is played
by gpu_stand_ins/: nvidia-smi, compute-sanitizer, gpu-probe, nn_test, and a torch of python3 that computes nothing.
"""
import dis
import json
import os
import shutil
import types
import unittest

from gpu_check_test import BUILD, SOURCE, STEPS, DryRun, records
import steps

REFUSING = BUILD / "tests/refusing_device"
ENGINES = ("train", "evaluate", "generate")
STAND_INS = SOURCE / "tests/scripts/gpu_stand_ins"


def lines_of(script):
    """Those with code, behind the import of torch: the stand-in sees them all from there on."""
    source = script.read_text()

    def within(code):
        yield from (line for _, line in dis.findlinestarts(code) if line)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                yield from within(constant)

    first = source.splitlines().index("import torch") + 1
    return {line for line in within(compile(source, script, "exec")) if line > first}


@unittest.skipUnless((REFUSING / "refusing_train_engine").exists(), "this build has no refusing device")
class RefusingDeviceDryRunTest(DryRun):
    """The command lines of a GPU, word for word."""

    def setUp(self):
        super().setUp()
        self.build, self.device = self.folder / "build", "cuda"
        self.torch_log = self.folder / "torch.jsonl"
        self.environment = {"PATH": f"{STAND_INS}:{os.environ['PATH']}", "PYTHONPATH": str(STAND_INS), "PYTHONDONTWRITEBYTECODE": "1",
                            "CUDA_VISIBLE_DEVICES": "",  # one that the machine has is not the one that is played
                            "TRAINWRIGHT_STAND_IN_BUILD": str(BUILD), "TRAINWRIGHT_STAND_IN_LOG": str(self.torch_log)}
        of_build = {f"{folder}/{name}": BUILD / folder / name for folder, name in (
            ("bin", "pretokenize"), ("bin", "pack"), ("tests", "device_test"), ("tests", "train_test"))}
        engines = {f"libexec/trainwright/{name}-engine": REFUSING / f"refusing_{name}_engine" for name in ENGINES}
        for name, target in {**of_build, **engines, "tests/kernel_speed": REFUSING / "refusing_kernel_speed",
                             "tests/nn_test": STAND_INS / "nn_test", "bin/gpu-probe": STAND_INS / "gpu-probe"}.items():
            (self.build / name).parent.mkdir(parents=True, exist_ok=True)
            (self.build / name).symlink_to(target)
        for name in ENGINES:
            shutil.copy(BUILD / "bin" / name, self.build / "bin")  # it looks for its engine where it lies

    def test_every_step_passes(self):
        result = self.check()
        told = records(self.out)
        self.assertEqual([(r["step"], r["status"]) for r in told], [(name, "passed") for name in STEPS], result.stdout)
        self.assertEqual(result.returncode, 0)
        figures = {record["step"]: record["figures"] for record in told}
        self.check_trace_and_reruns(figures)
        self.assertLess(figures["loss_parity"]["first_step_difference"], 1e-4)
        self.assertGreater(figures["compiled"]["launched"], 0)
        log = (self.out.with_name("out.work") / "commands.log").read_text()
        self.assertIn("device refusing:0", log)
        self.assertNotIn("has no effect on a CPU", log)
        self.check_features(figures, log)
        self.check_machine(figures, log)
        self.check_programs(figures)
        self.check_torch(figures)

    def check_machine(self, figures, log):
        self.assertEqual(figures["identity"]["name"], "Stand-in GPU")
        self.assertIn("gpu-probe --quick --disk-size 0 --require-gpu --recommend", log)
        self.assertEqual((figures["gpt2_124m"]["power_w"], figures["gpt2_124m_again"]["sm_clock_mhz"]), (300.5, 1500))
        self.assertIn("gpu_state", figures["ceilings"])
        self.assertTrue(figures["ceilings"]["best"])

    def check_features(self, figures, log):
        """Each of them ran on the device, and came near the CPU by computing elsewhere."""
        names = [name for name, _, _ in steps.FEATURES]
        self.assertEqual(list(figures["features"]), [*names, "evaluate", "generate"])
        for name in names:
            _, begin = steps.read_run(self.out.with_name("out.work") / f"{name}-gpu")
            self.assertEqual(begin["device"], "refusing:0", name)
        self.assertTrue(any(figures["features"][name]["difference"] > 0 for name in names))
        for tool in ("evaluate", "generate"):
            self.assertRegex(log, rf"bin/{tool} -q --device cuda ")

    def check_programs(self, figures):
        tests = figures["gpu_tests"]["nn_test"]
        self.assertGreater(tests["passed"], 50)
        self.assertEqual(tests["failed"], [])
        self.assertEqual(figures["gpu_tests"]["without_a_case_that_ran"], ["device_test", "train_test"])  # they see no GPU
        operators = figures["operators"]["operators"]
        self.assertGreater(len(operators), 20)
        self.assertTrue(all(row["time_s"] > 0 for row in operators.values()))
        for name, summary in (("memcheck", "ERROR SUMMARY: 0 errors"), ("racecheck", "RACECHECK SUMMARY: 0 hazards")):
            self.assertIn(summary, figures[name]["summary"])
            self.assertGreater(figures[name]["passed"], 20)

    def check_torch(self, figures):
        """Every line of the scripts has run, and asked torch for what the step is about."""
        runs = [json.loads(line) for line in self.torch_log.read_text().splitlines()]
        for name in ("torch_ceilings.py", "torch_gpt2.py"):
            ran = set().union(*(run["lines"] for run in runs if run["script"] == name))
            self.assertEqual(sorted(lines_of(SOURCE / "scripts/gpu_check" / name) - ran), [], name)
        gemms, attention, eager, compiled = (set(run["calls"]) for run in runs)
        self.assertLessEqual({"blas cublas", "blas cublaslt", "synchronize"}, gemms)
        self.assertLessEqual({f"{backend} attention, 2 heads, {keys} of keys" for backend in ("flash", "cudnn", "math")
                              for keys in (1, 2)} | {"efficient attention, 2 heads, 2 of keys"}, attention)
        self.assertLessEqual({"packed attention of 1, 2 heads, 2 of keys", "packed attention of 1, 2 heads, 1 of keys",
                              "packed attention of 3, 2 heads, 1 of keys"}, attention)
        self.assertEqual(compiled - eager, {"compile"})
        self.assertLessEqual({"backward", "AdamW.step", "autocast cuda"}, eager)
        rates = figures["attention_shapes"]["tflops"]
        self.assertEqual({name for name, rate in rates.items() if rate is None},
                         {f"{model} grouped efficient" for model in ("1b 8k", "1b 32k", "8b 8k", "8b 32k")})
        self.assertIn("8b 32k grouped packed documents with backward", rates)


if __name__ == "__main__":
    unittest.main()
