#!/usr/bin/env python3
"""The commands of scripts/compare/walk.sh can be read: by the shell, and what is Python in them by Python. None is run.

usage: walk_test.py SOURCE_DIR
"""
import pathlib
import re
import subprocess
import sys
import unittest

SOURCE = pathlib.Path(sys.argv.pop(1)).resolve()
CLIENTS = ("jq", "transformers", "mlflow", "tensorboard")


class WalkTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        listed = subprocess.run([SOURCE / "scripts/compare/walk.sh", "--list"], text=True, capture_output=True, timeout=60,
                                stdin=subprocess.DEVNULL, check=True).stdout
        blocks = re.findall(r"^## ([^\n]*)\n```\n(.*?)^```$", listed, flags=re.M | re.S)
        cls.steps = {title: "".join(line.removeprefix("$ ") + "\n" for line in block.splitlines()) for title, block in blocks}
        cls.all = "".join(cls.steps.values()).replace("TRAINWRIGHT/", f"{SOURCE}/")

    def test_the_shell_reads_every_step(self):
        self.assertGreater(len(self.steps), 12)
        for title, commands in self.steps.items():
            result = subprocess.run(["bash", "-n"], input=commands, text=True, capture_output=True, timeout=60, check=False)
            self.assertEqual((result.returncode, result.stderr), (0, ""), title)

    def test_python_reads_its_parts(self):
        parts = re.findall(r"\$PYTHON -c '([^']*)'", self.all)
        scripts = re.findall(r"\$PYTHON (/\S+\.py)", self.all)
        self.assertEqual((len(parts), len(scripts)), (2, 2))
        for part in parts:
            compile(part, "walk.sh", "exec")
        for script in scripts:
            compile(pathlib.Path(script).read_text(encoding="utf-8"), script, "exec")

    def test_every_client_reads_and_says_its_version(self):
        for client in CLIENTS:
            self.assertIn(client, self.all)
        self.assertIn("jq --version", self.all)
        reads = (SOURCE / "scripts/compare/transformers_reads.py").read_text(encoding="utf-8")
        self.assertIn("transformers.__version__", reads + self.all)
        for package in ("mlflow", "tensorboard"):
            self.assertIn(f"{package}.__version__", self.all)


if __name__ == "__main__":
    unittest.main()
