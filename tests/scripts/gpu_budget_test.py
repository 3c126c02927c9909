"""Tests of scripts/gpu_budget.py: gpu_budget_test.py <source root>"""
import argparse
import json
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(ROOT / "scripts"))
import gpu_budget  # noqa: E402

# Published, or of lib/spec/ten_presets.cc. What a budget leaves out, biases, norms, positions and taps, is below one per cent.
PARAMETERS = {"GPT-2 124M": 124_439_808, "GPT-2 1.5B": 1_557_611_200, "ten-small-32k": 131_355_655,
              "4 layers of a Llama 8B": 4 * 218_112_000 + 2 * 128_256 * 4096}

OPTIONS = argparse.Namespace(memory_gb=80, residual_stream="fp32")


def run(*flags):
    return subprocess.run([ROOT / "scripts/gpu_budget.py", *flags], capture_output=True, text=True, check=False)


class GpuBudgetTest(unittest.TestCase):
    def test_models_have_the_parameters_that_are_published(self):
        for model in gpu_budget.MODELS:
            exact = next(count for name, count in PARAMETERS.items() if model.name.startswith(name))
            self.assertLess(abs(model.parameters - exact), 0.01 * exact, model.name)

    def test_products_do_six_flops_a_weight_and_token(self):
        for model in gpu_budget.MODELS:
            parts = [part for part in gpu_budget.parts_of(model, OPTIONS) if "GEMM" in part.name or part.name.startswith("head")]
            tokens = model.tokens * model.micro_batches
            self.assertAlmostEqual(sum(part.flops for part in parts) / (6 * tokens * model.multiplying_weights), 1)

    def test_no_part_moves_less_than_it_must(self):
        for model in gpu_budget.MODELS:
            for part in gpu_budget.parts_of(model, OPTIONS):
                self.assertGreaterEqual(part.today_bytes, part.least_bytes, f"{model.name}: {part.name}")

    def test_a_gpu_of_twice_the_rates_takes_half_the_time(self):
        slow, fast = (json.loads(run("--json", "--gemm-tflops", str(rate), "--bandwidth-tb-s", str(rate / 250)).stdout
                                 .splitlines()[0]) for rate in (350, 700))
        self.assertAlmostEqual(slow["today_s"], 2 * fast["today_s"])
        self.assertAlmostEqual(2 * slow["utilisation_least"], fast["utilisation_least"])

    def test_norms_of_a_stream_in_bf16_move_what_the_man_page_says(self):
        for model in gpu_budget.MODELS:
            elements = 2 * model.layers * model.tokens * model.width
            self.assertEqual(gpu_budget.norms(model, gpu_budget.FP32).today_bytes, 34 * elements)
            self.assertEqual(gpu_budget.norms(model, gpu_budget.BF16).today_bytes, 20 * elements)

    def test_the_first_micro_batch_of_a_step_reads_no_gradients(self):
        for model in gpu_budget.MODELS:
            parts = gpu_budget.parts_of(model, OPTIONS)
            saved = sum(part.first_saves for part in parts)
            self.assertEqual(saved, 0, "of a step it is taken off already")
            one = [gpu_budget.gemm("", model, 10, 1, 1), gpu_budget.head(model, OPTIONS)]
            for part, weights in zip(one, (10 * model.layers, model.head_weights)):
                for times in (1, 3):
                    self.assertEqual(part.of_step(times).today_bytes,
                                     times * part.today_bytes - weights * gpu_budget.FP32, f"{model.name}, {times}")

    def test_slices_are_as_few_as_an_eighth_of_the_free_memory_allows(self):
        model = next(model for model in gpu_budget.MODELS if model.name.startswith("GPT-2 124M"))
        slices = {gb: gpu_budget.head_slices(model, 50304, argparse.Namespace(memory_gb=gb)) for gb in (2.5, 20, 80)}
        self.assertEqual(slices, {2.5: 99, 20: 3, 80: 1})  # of 3.3G logits: 32M at least, and an eighth of 2 bytes each

    def test_rates_that_are_none_are_refused(self):
        self.assertEqual(run("--gemm-tflops", "0").returncode, 2)


if __name__ == "__main__":
    unittest.main()
