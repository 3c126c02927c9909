#!/usr/bin/env python3
"""What `cmake --install BUILD --prefix FOLDER` puts there works: tools, man pages and completions.

usage: install_test.py CMAKE SOURCE_DIR BUILD_DIR
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

CMAKE, SOURCE, BUILD = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
del sys.argv[1:]
TOOLS = [page.stem for page in sorted((SOURCE / "man").glob("*.1")) if (BUILD / "bin" / page.stem).exists()]


class InstallTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.prefix = pathlib.Path(cls.folder.name) / "local"
        subprocess.run([CMAKE, "--install", BUILD, "--prefix", cls.prefix], check=True, stdout=subprocess.DEVNULL)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_every_tool_answers(self):
        self.assertTrue(TOOLS)
        for tool in TOOLS:
            said = subprocess.run([self.prefix / "bin" / tool, "--version"], text=True, capture_output=True, check=True)
            self.assertTrue(said.stdout.startswith(f"{tool} (Trainwright) "), said.stdout)

    def test_every_tool_has_its_page_and_completions(self):
        for tool in TOOLS:
            for pattern in (f"man1/{tool}.1*", f"completions/{tool}", f"site-functions/_{tool}",
                            f"vendor_completions.d/{tool}.fish"):
                self.assertTrue(list(self.prefix.rglob(pattern)), f"{tool}: no {pattern}")

    @unittest.skipUnless("gpu-probe" in TOOLS, "a build without LibTorch")
    def test_a_tool_that_computes_finds_its_engine(self):
        said = subprocess.run([self.prefix / "bin/gpu-probe", "--quick", "--disk-size", "0", "--device", "cpu", "--kernels", "usual",
                               "--recommend"], text=True, capture_output=True, check=True)
        self.assertIn("\ndevice: \"cpu\"\n", said.stdout)


if __name__ == "__main__":
    unittest.main()
