#!/usr/bin/env python3
"""What CMake makes of the folders, the compiler and the linker that it is given, in small projects with the modules of cmake/.

usage: configure_test.py SOURCE_DIR
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv.pop(1)).resolve()
# A header whose check of a condition calls a function of std::string, as torch's does.
EXCEPTION = """#include <string>
namespace c10 {
void Fail(const std::string& why);
}
#define TORCH_CHECK(condition, ...) \\
  do {                              \\
    if (!(condition)) c10::Fail(""); \\
  } while (false)
"""


class Project(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp()).resolve()
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "bin").mkdir()
        (self.folder / "scripts").symlink_to(SOURCE / "scripts")

    def configure(self, text, *arguments, languages="NONE", **variables):
        """\returns the exit status and all that CMake said, in one line"""
        (self.folder / "CMakeLists.txt").write_text(
            f"cmake_minimum_required(VERSION 3.25)\nproject(small LANGUAGES {languages})\n"
            f'list(PREPEND CMAKE_MODULE_PATH "{SOURCE}/cmake")\n{text}')
        ran = subprocess.run(["cmake", "-G", "Ninja", "-S", self.folder, "-B", self.folder / "build", *arguments],
                             env={"PATH": f"{self.folder}/bin:/usr/local/bin:/usr/bin:/bin", "HOME": str(self.folder), **variables},
                             text=True, capture_output=True, check=False, timeout=120)
        return ran.returncode, " ".join((ran.stdout + ran.stderr).split())


class NamedDirTest(Project):
    TEXT = """include(NamedDir)
trainwright_named_dir(TRAINWRIGHT_TORCH_DIR "A folder")
if(NOT TRAINWRIGHT_TORCH_DIR)
  message(FATAL_ERROR "no folder")
endif()
message("takes <${TRAINWRIGHT_TORCH_DIR}>")
"""

    def setUp(self):
        super().setUp()
        self.one, self.other = (self.folder / name for name in ("one", "other"))
        self.one.mkdir()
        self.other.mkdir()

    def takes(self, folder, *arguments, **variables):
        status, said = self.configure(self.TEXT, *arguments, **variables)
        self.assertEqual(status, 0, said)
        self.assertIn(f"takes <{folder}>", said)
        return said

    def test_a_folder_named_after_a_failure_counts(self):
        self.assertNotEqual(self.configure(self.TEXT)[0], 0)
        self.takes(self.one, TRAINWRIGHT_TORCH_DIR=str(self.one))

    def test_another_folder_of_the_environment_counts(self):
        self.takes(self.one, TRAINWRIGHT_TORCH_DIR=str(self.one))
        self.takes(self.other, TRAINWRIGHT_TORCH_DIR=str(self.other))

    def test_the_environments_folder_stays_while_it_is_there(self):
        self.takes(self.one, TRAINWRIGHT_TORCH_DIR=str(self.one))
        self.takes(self.one)
        self.one.rmdir()
        self.assertNotEqual(self.configure(self.TEXT)[0], 0)

    def test_a_flags_folder_counts_before_the_environments_and_that_is_said(self):
        self.assertNotIn("Warning", self.takes(self.one, f"-DTRAINWRIGHT_TORCH_DIR={self.one}"))
        self.assertIn(f"is {self.other} in the environment", self.takes(self.one, TRAINWRIGHT_TORCH_DIR=str(self.other)))
        self.takes(self.other, "-DTRAINWRIGHT_TORCH_DIR=", TRAINWRIGHT_TORCH_DIR=str(self.other))


class TorchVersionTest(Project):
    def said_of(self, version, header="torch/headeronly/version.h"):
        root = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        if version:
            numbers = zip(("MAJOR", "MINOR", "PATCH"), version.split("."))
            (root / "include" / header).parent.mkdir(parents=True)
            (root / "include" / header).write_text("".join(f"#define TORCH_VERSION_{name} {number}\n" for name, number in numbers))
        status, said = self.configure(f'include(LibTorchChecks)\ntrainwright_compare_torch_version("{root}" 2.11.0)\n')
        self.assertEqual(status, 0, said)
        return said

    def test_another_version_than_the_tested_one_is_warned_of(self):
        self.assertNotIn("Warning", self.said_of("2.11.0"))
        self.assertIn("is 2.12.1; Trainwright is tested with 2.11.0", self.said_of("2.12.1"))
        self.assertIn("is 2.6.0; Trainwright is tested with 2.11.0", self.said_of("2.6.0", "torch/csrc/api/include/torch/version.h"))
        self.assertIn("is not known", self.said_of(None))

    def test_the_tested_version_is_the_one_that_is_fetched(self):
        version = re.search(r"^torch_version=(\S+)$", (SOURCE / "scripts/common.sh").read_text(), re.MULTILINE)[1]
        self.assertIn(f"trainwright_compare_torch_version(${{TRAINWRIGHT_TORCH_ROOT}} {version})",
                      (SOURCE / "cmake/LibTorch.cmake").read_text())


class TorchLinkTest(Project):
    def setUp(self):
        super().setUp()
        (self.folder / "include/c10/util").mkdir(parents=True)
        (self.folder / "include/c10/util/Exception.h").write_text(EXCEPTION)
        (self.folder / "lib").mkdir()

    def make_library(self, abi):
        subprocess.run(["c++", "-shared", "-fPIC", f"-D_GLIBCXX_USE_CXX11_ABI={abi}", "-x", "c++", "-", "-o",
                        self.folder / "lib/libc10.so"], text=True, check=True,
                       input="#include <string>\nnamespace c10 {\nvoid Fail(const std::string&) {}\n}\n")

    def test_a_library_of_the_older_abi_is_refused_until_there_is_another(self):
        text = f'include(LibTorchChecks)\ntrainwright_require_torch_abi("{self.folder}")\n'
        self.make_library(abi=0)
        status, said = self.configure(text, languages="CXX")
        self.assertNotEqual(status, 0, said)
        self.assertIn("older ABI of std::string", said)
        self.make_library(abi=1)
        status, said = self.configure(text, languages="CXX")
        self.assertEqual(status, 0, said)

    def test_an_openmp_of_another_runtime_is_refused(self):
        self.make_library(abi=1)  # which has nothing of OpenMP
        status, said = self.configure(
            f'include(LibTorchChecks)\nset(OpenMP_CXX_FLAGS -fopenmp)\n'
            f'trainwright_require_torch_openmp("{self.folder}/lib/libc10.so")\n', languages="CXX")
        self.assertNotEqual(status, 0, said)
        self.assertIn("makes of OpenMP does not link", said)


class LinkerTest(Project):
    TEXT = 'set(TRAINWRIGHT_SANITIZE "")\ninclude(CompilerSettings)\nmessage("links by <${_linker}>")\n'

    def setUp(self):
        super().setUp()
        mold = self.folder / "bin/ld.mold"  # one that is there and that the compiler cannot use
        mold.write_text("#!/bin/sh\nexit 1\n")
        mold.chmod(0o755)

    def test_a_linker_that_the_compiler_cannot_use_is_not_taken(self):
        status, said = self.configure(self.TEXT, languages="CXX C")
        self.assertEqual(status, 0, said)
        self.assertRegex(said, "links by <(lld)?>")

    def test_one_that_is_asked_for_is_refused_at_once(self):
        status, said = self.configure(self.TEXT, "-DTRAINWRIGHT_LINKER=mold", languages="CXX C")
        self.assertNotEqual(status, 0, said)
        self.assertIn("does not link with -fuse-ld=mold", said)


class JobPoolTest(Project):
    TEXT = 'include(JobPool)\nmessage("pools <${CMAKE_JOB_POOLS}> compile in <${CMAKE_JOB_POOL_COMPILE}>")\n'

    def test_ninja_runs_no_more_compilers_than_memory_holds(self):
        status, said = self.configure(self.TEXT)
        self.assertEqual(status, 0, said)
        self.assertRegex(said, r"pools <trainwright_compilers=[1-9]\d*> compile in <trainwright_compilers>")

    def test_the_users_number_counts_instead(self):
        self.assertIn("pools <> compile in <>", self.configure(self.TEXT, CMAKE_BUILD_PARALLEL_LEVEL="40")[1])
        self.assertIn("pools <> compile in <>", self.configure(self.TEXT, "-DCMAKE_JOB_POOL_COMPILE=")[1])


if __name__ == "__main__":
    unittest.main()
