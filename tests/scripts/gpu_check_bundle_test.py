#!/usr/bin/env python3
"""What scripts/gpu-check.sh --bundle promises: what it packs, what it may weigh, and that it runs once it is unpacked.

usage: gpu_check_bundle_test.py SOURCE_DIR BUILD_DIR
"""
import os
import pathlib
import shutil
import subprocess
import sys
import unittest
import unittest.mock

from gpu_check_test import BUILD, SOURCE, Scratch, records
import bundle

PROGRAMS = ([f"bin/{name}" for name in bundle.TOOLS] + [f"libexec/trainwright/{name}" for name in bundle.ENGINES] +
            [f"tests/{name}" for name in bundle.PROGRAMS])


class BundleTest(Scratch):
    def setUp(self):
        super().setUp()
        self.build = self.folder / "build"
        for name in PROGRAMS:
            (self.build / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy("/bin/true", self.build / name)
        self.file = self.folder / "bundle.tar.xz"

    def test_holds_what_the_check_needs(self):
        self.assertEqual(bundle.make(self.file, self.build), self.file.stat().st_size)
        listed = subprocess.run([sys.executable, "-m", "tarfile", "-l", self.file], text=True, capture_output=True,
                                check=True).stdout.split()
        for name in ("gpu-check.sh", "gpu_check/main.py", "gpu_check/configs/gpt2-124m.json", "tinyshakespeare.txt",
                     "libexec/trainwright/libtrainwright_cuda.so", "tests/nn_test", "fixtures/nn/fixtures/"):
            self.assertIn(f"gpu-check/{name}", listed)

    def test_no_other_program_unpacks_it_than_python3_by_the_command_that_is_printed(self):
        bundle.make(self.file, self.build)
        command = bundle.unpack_command(self.file.name).split()
        self.assertEqual(command, ["python3", "-W", "ignore", "-m", "tarfile", "-e", "bundle.tar.xz"])
        unpacked = subprocess.run([sys.executable, *command[1:]], cwd=self.folder, env={"PATH": str(self.folder)}, text=True,
                                  capture_output=True, check=True)
        self.assertEqual(unpacked.stdout + unpacked.stderr, "")
        for name in ("gpu-check.sh", "bin/train", "tests/nn_test"):
            self.assertTrue(os.access(self.folder / "gpu-check" / name, os.X_OK), name)
        told = subprocess.run([SOURCE / "scripts/gpu-check.sh", "--help"], text=True, capture_output=True, check=True).stdout
        self.assertIn(bundle.unpack_command("FILE.tar.xz"), told)
        self.assertNotIn(".zst", told)

    def test_too_large_a_one_is_refused_with_what_is_large_and_leaves_nothing(self):
        with self.assertRaises(bundle.BundleError) as refused:
            bundle.make(self.file, self.build, most_bytes=1000)
        self.assertIn("MiB, more than", str(refused.exception))
        self.assertIn("MiB", refused.exception.hint)
        self.assertFalse(self.file.exists())

    def test_a_build_that_is_not_whole_is_refused_with_what_it_lacks(self):
        (self.build / "tests/nn_test").unlink()
        with self.assertRaises(bundle.BundleError) as refused:
            bundle.make(self.file, self.build)
        self.assertIn("tests/nn_test is not built", str(refused.exception))

    def test_of_a_build_without_the_cuda_plugin_it_is_made_for_dry_runs(self):
        (self.build / "libexec/trainwright" / bundle.CUDA_PLUGIN).unlink()
        for setting, expected in (("ON", False), ("OFF", True)):
            (self.build / "CMakeCache.txt").write_text(f"TRAINWRIGHT_CUDA:BOOL={setting}\n")
            with self.subTest(setting):
                if expected:
                    self.assertGreater(bundle.make(self.file, self.build), 0)
                else:
                    self.assertRaises(bundle.BundleError, bundle.make, self.file, self.build)

    def test_may_weigh_what_the_tracked_files_leave_of_64_mib(self):
        clone = self.folder / "clone"
        (clone / "build").mkdir(parents=True)
        for name, size in (("tracked", 3000), ("build/engine", 500)):
            (clone / name).write_bytes(bytes(size))
        with unittest.mock.patch.object(bundle, "SOURCE", clone):
            self.assertEqual(bundle.bytes_left(), 64 * 2**20 - 3000)  # no clone yet: all but build/
            (clone / "ignored").write_bytes(bytes(70))
            for command in (["init", "-q"], ["add", "tracked"]):
                subprocess.run(["git", "-C", clone, *command], check=True)
            self.assertEqual(bundle.bytes_left(), 64 * 2**20 - 3000)


class RealBundleTest(Scratch):
    """Of this build, with the CUDA plugin or without."""

    def setUp(self):
        super().setUp()
        self.build = self.folder / "build"
        for name in [*PROGRAMS, "CMakeCache.txt"]:
            (self.build / name).parent.mkdir(parents=True, exist_ok=True)
            if (BUILD / name).exists():
                (self.build / name).symlink_to(BUILD / name)

    def test_fits_beside_the_tracked_files_and_runs_unpacked(self):
        file = self.folder / "bundle.tar.xz"
        made = subprocess.run([SOURCE / "scripts/gpu-check.sh", "--bundle", file, "--build", self.build], text=True,
                              capture_output=True, check=False, timeout=600)
        self.assertEqual((made.returncode, made.stderr), (0, ""))
        self.assertIn(f"{file.stat().st_size:,} bytes", made.stdout)
        print(made.stdout, end="")
        self.assertEqual("is for --dry-run" in made.stdout, not bundle.has_cuda_plugin(self.build))
        self.assertLessEqual(file.stat().st_size, bundle.bytes_left())
        shutil.rmtree(self.build)
        self.assertIn(f"`{bundle.unpack_command(file.name)}`", made.stdout)
        subprocess.run([sys.executable, *bundle.unpack_command(file.name).split()[1:]], cwd=self.folder, check=True)
        names = ["identity", "loss_parity", "operators"]
        ran = subprocess.run([self.folder / "gpu-check/gpu-check.sh", "--dry-run", "--out", self.out, "--only", ",".join(names)],
                             text=True, capture_output=True, check=False, timeout=600, stdin=subprocess.DEVNULL)
        self.assertEqual([(r["step"], r["status"]) for r in records(self.out)], [(name, "passed") for name in names], ran.stdout)
        programs = [line for line in self.out.with_name("out.work").joinpath("commands.log").read_text().splitlines()
                    if line.startswith("$ ")]
        self.assertTrue(programs and all(line.startswith(f"$ {self.folder}/gpu-check/") for line in programs), programs)


if __name__ == "__main__":
    unittest.main()
