#!/usr/bin/env python3
"""The shapes that scripts/compare measures of the family ten, and what its reports make of known numbers.

usage: ten_compare_test.py SOURCE_DIR
"""
import pathlib
import sys
import unittest

SOURCE_DIR = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(SOURCE_DIR / "scripts/compare"))
import ten_models  # noqa: E402
import ten_report  # noqa: E402


def parameters(config):
    """Of a TEN with layer memory and a convolution and without windows, counted from what its layers hold."""
    width, states, layers = config["hidden_size"], config["num_eigenstates"], config["num_hidden_layers"]
    norms, gate = 4 * width, width * width + width
    cell = 2 * (2 * states * width) + 2 * states + 2 * states * config["conv_kernel"] + states * states // config["num_heads"]
    mlp = 2 * width * config["intermediate_size"]
    memory = (layers - 1) * (states * states + 1)
    return layers * (norms + gate + cell + mlp) + memory + 2 * width + config["vocab_size"] * width


class Models(unittest.TestCase):
    def test_ten_small_32k_is_the_preset(self):
        config = ten_models.LONG_MODELS["ten-small-32k"]["ten"]
        self.assertEqual(parameters(config), 131355655)
        self.assertEqual(config["max_position_embeddings"], 32768)
        self.assertEqual(config["windows"], [])


def timed(contestant, step_s, loss=5.0):
    """A run of three steps of 1,000 tokens each, of which the last one counts."""
    return {"settings": {"model": "ten-micro", "tokens": 500, "batch": 2, "steps": 3, "threads": 2}, "contestant": contestant,
            "round": 1, "load": [0.5, 0.5], "processor": "a processor", "versions": [], "losses_nats": [loss] * 3,
            "step_times_s": [9.0, 9.0, step_s], "cpu_times_s": [9.0, 9.0, 2 * step_s], "tokens": [1000] * 3}


class Reports(unittest.TestCase):
    def test_what_train_gains_with_ten_is_compared_with_what_it_gains_with_a_llama(self):
        runs = [timed("train", 1.0), timed("eager", 3.0), timed("compiled", 2.0), timed("llama", 2.0),
                timed("llama-eager", 3.0), timed("llama-compiled", 6.0)]
        report = ten_report.report(runs)
        self.assertIn("eager, train is 3.00 times as fast with TEN and 1.50 times with Llama: at least the ratio", report)
        self.assertIn("compiled, train is 2.00 times as fast with TEN and 3.00 times with Llama: NOT the ratio", report)
        llama_rows = [line for line in report.splitlines() if line.startswith("| Llama, ")]
        self.assertEqual([row.split("|")[-2].strip() for row in llama_rows], ["2.00", "1.50", "3.00"])

    def test_without_a_llama_in_pytorch_nothing_is_compared(self):
        self.assertNotIn("with Llama", ten_report.report([timed("train", 1.0), timed("eager", 3.0), timed("llama", 2.0)]))

    def test_first_losses_are_compared_model_by_model(self):
        runs = [timed("train", 1.0, 5.0), timed("eager", 1.0, 5.0), timed("llama", 1.0, 6.0), timed("llama-eager", 1.0, 6.1)]
        self.assertEqual(len(ten_report.differences(runs)), 1)
        self.assertIn("llama-eager", ten_report.differences(runs)[0])


if __name__ == "__main__":
    unittest.main()
