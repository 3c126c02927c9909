#!/usr/bin/env python3
"""The shapes that scripts/compare measures of the family ten, and what its reports make of known numbers.

usage: ten_compare_test.py SOURCE_DIR
"""
import pathlib
import sys
import types
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


def record_of(first_losses=None, **rates):
    """A comparison of three steps of 1,000 tokens with such rates, in one round."""
    samples = {ten_report.NAMES[name.replace("_", "-")]: {"": {
        "rate": rate, "cpu_s": 1, "wall_s": 1, "cpu_share": 1.0, "work": 1000, "losses_nats": [6.0 if "llama" in name else 5.0], "parameters": 1e6,
        "max_memory_bytes": 1e6}} for name, rate in rates.items()}
    name = "ten-micro, 512 tokens, threads 1"
    state = {"name": name, "settings": {"model": "ten-micro", "tokens": 512, "threads": 1, "unit": "tokens"}, "cpus": [0],
             "ours": "TEN, train", "peers": {one: one for one in samples}, "failed": {},
             "tries": [{"round": 1, "try": 1, "counts": True, "marks": [], "load": [0], "samples": samples}]}
    return types.SimpleNamespace(states=[state], extra={"first_losses": {name: first_losses or {}}})


class Reports(unittest.TestCase):
    def test_what_train_gains_with_ten_is_compared_with_what_it_gains_with_a_llama(self):
        text = ten_report.text(record_of(train=6, eager=2, compiled=3, llama=3, llama_eager=2, llama_compiled=1))
        self.assertIn("eager, train is 3.00 times as fast with TEN and 1.50 times with Llama: at least the ratio", text)
        self.assertIn("compiled, train is 2.00 times as fast with TEN and 3.00 times with Llama: NOT the ratio", text)

    def test_without_a_llama_in_pytorch_nothing_is_compared(self):
        self.assertNotIn("with Llama", ten_report.text(record_of(train=6, eager=2, llama=3)))

    def test_first_losses_are_compared_model_by_model(self):
        record = record_of({"eager": 5.0, "llama-eager": 6.1}, train=1, eager=1, llama=1, llama_eager=1)
        self.assertEqual(len(ten_report.differences(record)), 1)
        self.assertIn("llama-eager", ten_report.differences(record)[0])

    def test_the_scans_of_all_layers_are_a_share_of_a_step(self):
        record, scans = record_of(train=10), record_of(scan=1000)
        scans.states[0]["name"] = "scan, " + record.states[0]["name"]
        record.states += scans.states
        layers = ten_models.MODELS["ten-micro"]["ten"]["num_hidden_layers"]
        self.assertIn(f"The scans of {layers} layers take {layers / 100:.1%} of train's step.", ten_report.text(record))


if __name__ == "__main__":
    unittest.main()
