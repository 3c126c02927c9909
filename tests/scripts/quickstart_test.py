#!/usr/bin/env python3
"""How scripts/quickstart.sh has the build configured, and how it ends: with stand-ins for what sets up, for nvcc, for a cmake
that fails, and for one that does not and the tools.

usage: quickstart_test.py SOURCE_DIR
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv.pop(1))


class QuickstartTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "scripts").mkdir()
        for name in ("quickstart.sh", "common.sh"):
            shutil.copy(SOURCE / "scripts" / name, self.folder / "scripts" / name)
        self.stand_in("scripts/setup.sh", "")
        self.stand_in("scripts/fetch_libtorch.sh", f'echo fetch_libtorch "$@" >> "{self.folder}/log"')
        self.stand_in("bin/cmake", f'echo cmake "$@" >> "{self.folder}/log"; exit 1')

    def stand_in(self, path, text):
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)

    def build_file(self, name):
        file = self.folder / "build/release" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()

    def run_until_cmake(self):
        """What the script says, and the words of the commands that it ran until cmake failed."""
        (self.folder / "log").unlink(missing_ok=True)
        result = subprocess.run([self.folder / "scripts/quickstart.sh"], text=True, timeout=60, stdin=subprocess.DEVNULL,
                                env={"PATH": f"{self.folder}/bin:/usr/bin:/bin", "HOME": str(self.folder)},
                                capture_output=True, check=False)
        self.assertIn("cmake could not configure the build", result.stderr)
        return result.stdout, (self.folder / "log").read_text().split()

    def run_to_the_end(self):
        """What the script says where nothing fails."""
        self.stand_in("bin/cmake", "exit 0")
        self.stand_in("bin/python3", f'exec "{sys.executable}" "$@"')
        for tool, does in {
                "pretokenize": "", "pack": "cat > /dev/null",
                "train": """mkdir -p runs/quickstart
echo '{"type": "eval", "step": 0, "loss_nats": 2, "perplexity": 7.4, "bits_per_byte": 1}' > runs/quickstart/metrics.jsonl""",
                "evaluate": """echo '{"loss_nats": 1, "perplexity": 2.7, "bits_per_byte": 0.5}'""",
                "generate": """echo '{"prompt": "One", "text": " and two"}'"""}.items():
            self.stand_in(f"build/release/bin/{tool}", does)
        result = subprocess.run([self.folder / "scripts/quickstart.sh"], text=True, timeout=60, stdin=subprocess.DEVNULL,
                                env={"PATH": f"{self.folder}/bin:/usr/bin:/bin", "HOME": str(self.folder)},
                                capture_output=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def with_nvcc(self, release):
        self.stand_in("bin/nvidia-smi", "exit 0")
        self.stand_in("bin/nvcc", f"echo 'Cuda compilation tools, release {release}, V{release}.1'")
        return self.run_until_cmake()

    def test_tests_are_left_out_unless_the_folder_has_them(self):
        self.assertIn("-DTRAINWRIGHT_TESTS=OFF", self.run_until_cmake()[1])
        self.build_file("CTestTestfile.cmake")
        self.assertNotIn("-DTRAINWRIGHT_TESTS=OFF", self.run_until_cmake()[1])

    def test_tests_are_left_out_where_cmake_has_failed_with_them(self):
        self.build_file("CMakeCache.txt")
        self.assertIn("-DTRAINWRIGHT_TESTS=OFF", self.run_until_cmake()[1])

    def test_it_ends_with_the_next_step(self):
        said = self.run_to_the_end()
        result, after = said.split("== Next")
        self.assertIn("One and two", result)
        install = f"cmake --install {self.folder}/build/release --prefix ~/.local && export PATH=~/.local/bin:$PATH"
        self.assertIn(install, after)
        self.assertIn(install.replace(f"{self.folder}/", ""), (SOURCE / "README.md").read_text())
        for command in ("pretokenize --tokenizer", "train --data own/", "generate --checkpoint runs/own",
                        f"{self.folder}/scripts/finetune.sh path/to/model talks.jsonl"):
            self.assertIn(command, after)

    def test_cuda_13_builds_the_plugin(self):
        words = self.with_nvcc("13.0")[1]
        self.assertIn("-DTRAINWRIGHT_CUDA=ON", words)
        self.assertIn("--cuda", words)

    def test_another_cuda_trains_on_the_cpu_and_fetches_nothing_for_it(self):
        for release in ("11.8", "12.0"):
            said, words = self.with_nvcc(release)
            self.assertIn("trains on the CPU", said)
            self.assertIn("-DTRAINWRIGHT_CUDA=OFF", words)
            self.assertNotIn("--cuda", words)


if __name__ == "__main__":
    unittest.main()
