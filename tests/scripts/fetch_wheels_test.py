#!/usr/bin/env python3
"""What scripts/fetch_libtorch.sh and fetch_arrow.sh promise, with a stand-in for pip that "downloads" tiny wheels.

usage: fetch_wheels_test.py SOURCE_DIR
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv.pop(1))

# Stands before the real python3 in PATH. FAKE_PIP says what happens: ok, fail (pip refuses: bad hash, no network),
# or a wheel that is no zip file.
FAKE_PYTHON = r'''#!/bin/sh
echo called >> "$FAKE_LOG"
[ "$FAKE_PIP" != fail ] || exit 1
while [ "$1" != --dest ]; do shift; done
mkdir -p "$2" && exec "$REAL_PYTHON" - "$2" "$FAKE_PIP" "$4" <<'PY'
import sys, zipfile
wheels = {
    "torch-2.11.0-cp311.whl": ["torch/lib/libtorch_cpu.so", "torch/include/a.h", "torch/unwanted.py",
                               "torch-2.11.0.dist-info/LICENSE"],
    "nvidia_cuda_runtime.whl": ["nvidia/cu13/lib/libcudart.so.13", "nvidia_cuda_runtime.dist-info/License.txt"],
    "nvidia_cuda_cupti.whl": ["nvidia/cu13/lib/libcupti.so.13", "nvidia_cuda_cupti.dist-info/License.txt"],
}
if "libtorch-cuda" in sys.argv[3]:
    wheels = {"nvidia_cublas.whl": ["nvidia/cu13/lib/libcublas.so.13", "nvidia/cu13/lib/libcublasLt.so.13",
                                    "nvidia/cu13/include/cublas.h", "nvidia_cublas.dist-info/License.txt"],
              "nvidia_cudnn_cu13.whl": ["nvidia/cudnn/lib/libcudnn.so.9", "nvidia/cudnn/lib/libcudnn_static.a",
                                        "nvidia_cudnn_cu13.dist-info/License.txt"]}
if "arrow" in sys.argv[3]:
    wheels = {"pyarrow-26.0.1-cp311.whl": [
        "pyarrow/libarrow.so.2600", "pyarrow/libparquet.so.2600", "pyarrow/libarrow_flight.so.2600",
        "pyarrow/include/arrow/api.h", "pyarrow/include/parquet/api.h", "pyarrow/lib.py",
        "pyarrow-26.0.1.dist-info/licenses/LICENSE.txt"]}
for name, members in wheels.items():
    if sys.argv[2] == "broken" and name.startswith("nvidia_cuda_runtime"):
        open(f"{sys.argv[1]}/{name}", "w").write("no zip file")
        continue
    with zipfile.ZipFile(f"{sys.argv[1]}/{name}", "w") as wheel:
        for member in members:
            wheel.writestr(member, member)
PY
'''


class FetchTest:
    """What both scripts promise; runs SCRIPT with the stand-in, into a cache of its own."""

    SCRIPT = ""
    OTHER_WAY = ""  # the variable that names an existing folder

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.cache = self.folder / "cache"
        (self.folder / "bin").mkdir()
        fake = self.folder / "bin/python3"
        fake.write_text(FAKE_PYTHON)
        fake.chmod(0o755)

    def fetch(self, *arguments, pip="ok", **extra):
        environment = {"PATH": f"{self.folder}/bin:/usr/bin:/bin", "HOME": str(self.folder), "FAKE_PIP": pip,
                       "FAKE_LOG": str(self.folder / "log"), "REAL_PYTHON": sys.executable,
                       "TRAINWRIGHT_LIBTORCH_CACHE": str(self.cache), **extra}
        return subprocess.run([SOURCE / "scripts" / self.SCRIPT, *arguments], env=environment, text=True, timeout=60,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False)

    def downloads(self):
        log = self.folder / "log"
        return len(log.read_text().splitlines()) if log.exists() else 0

    def kept(self):
        """Paths of the files in the cache, the lock aside."""
        return sorted(str(path.relative_to(self.cache)) for path in self.cache.rglob("*")
                      if path.is_file() and path.suffix != ".lock")

    def test_second_run_needs_no_network(self):
        self.fetch()
        result = self.fetch(pip="fail")
        self.assertEqual((result.returncode, self.downloads()), (0, 1), result.stderr)

    def test_failed_download_leaves_nothing(self):
        result = self.fetch(pip="fail")
        self.assertEqual((result.returncode, self.kept()), (1, []))
        self.assertRegex(result.stderr, f"hint: .*{self.OTHER_WAY}")


class FetchLibtorchTest(FetchTest, unittest.TestCase):
    SCRIPT = "fetch_libtorch.sh"
    OTHER_WAY = "TRAINWRIGHT_TORCH_DIR"

    def test_unpacks_libraries_headers_and_licences_and_nothing_else(self):
        result = self.fetch()
        self.assertEqual(result.returncode, 0, result.stderr)
        root = "libtorch-2.11.0/"
        self.assertEqual(self.kept(), sorted(root + name for name in [
            ".trainwright-complete", "torch/lib/libtorch_cpu.so", "torch/include/a.h", "torch-2.11.0.dist-info/LICENSE",
            "nvidia/cu13/lib/libcudart.so.13", "nvidia_cuda_runtime.dist-info/License.txt",
            "nvidia/cu13/lib/libcupti.so.13", "nvidia_cuda_cupti.dist-info/License.txt"]))

    def test_broken_wheel_leaves_nothing(self):
        result = self.fetch(pip="broken")
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual(self.kept(), [])

    def test_remains_of_a_killed_run_are_replaced(self):
        remains = self.cache / "libtorch-2.11.0.partial.abcdef/tree/torch"
        remains.mkdir(parents=True)
        (remains / "half").write_text("half a library")
        self.assertEqual(self.fetch().returncode, 0)
        self.assertFalse(remains.exists())

    def test_folder_without_its_seal_is_replaced(self):
        library = self.cache / "libtorch-2.11.0/torch/lib"
        library.mkdir(parents=True)
        (library / "libtorch_cpu.so").write_text("half a library")
        self.assertEqual(self.fetch().returncode, 0)
        self.assertEqual((library / "libtorch_cpu.so").read_text(), "torch/lib/libtorch_cpu.so")

    def test_existing_libtorch_is_used_and_nothing_is_fetched(self):
        library = self.folder / "own/torch/lib"
        library.mkdir(parents=True)
        (library / "libtorch_cpu.so").touch()
        result = self.fetch(TRAINWRIGHT_TORCH_DIR=str(self.folder / "own"))
        self.assertEqual((result.returncode, self.downloads()), (0, 0), result.stderr)

    def test_existing_libtorch_that_is_none_is_refused(self):
        self.assertEqual(self.fetch(TRAINWRIGHT_TORCH_DIR=str(self.folder)).returncode, 1)

    def test_libraries_of_cuda_come_beside_libtorch_where_it_looks_for_them(self):
        result = self.fetch("--cuda")
        self.assertEqual((result.returncode, self.downloads()), (0, 2), result.stderr)
        beside = {str(path.relative_to(self.cache / "libtorch-2.11.0"))
                  for path in (self.cache / "libtorch-2.11.0/nvidia").rglob("*") if path.is_file()}
        self.assertEqual(beside, {"nvidia/cu13/lib/libcudart.so.13", "nvidia/cu13/lib/libcupti.so.13",
                                  "nvidia/cu13/lib/libcublas.so.13", "nvidia/cu13/lib/libcublasLt.so.13",
                                  "nvidia/cudnn/lib/libcudnn.so.9"})
        result = self.fetch("--cuda", pip="fail")
        self.assertEqual((result.returncode, self.downloads()), (0, 2), result.stderr)

    def test_libraries_of_cuda_come_back_beside_a_libtorch_that_was_fetched_anew(self):
        self.fetch("--cuda")
        shutil.rmtree(self.cache / "libtorch-2.11.0")
        self.assertEqual(self.fetch("--cuda").returncode, 0)
        self.assertTrue((self.cache / "libtorch-2.11.0/nvidia/cudnn/lib/libcudnn.so.9").exists())

    def test_failed_download_of_cuda_libraries_leaves_libtorch(self):
        self.fetch()
        result = self.fetch("--cuda", pip="fail")
        self.assertEqual(result.returncode, 1)
        self.assertEqual([name for name in self.kept() if "cublas" in name], [])
        self.assertIn("libtorch-2.11.0/torch/lib/libtorch_cpu.so", self.kept())

    def test_existing_libtorch_without_its_cuda_libraries_is_refused_with_their_names(self):
        library = self.folder / "own/torch/lib"
        library.mkdir(parents=True)
        (library / "libtorch_cpu.so").touch()
        (library / "libtorch_cuda.so").touch()
        fake_ldd = self.folder / "bin/ldd"
        fake_ldd.write_text("#!/bin/sh\nprintf '\\tlibcufile.so.0 => not found\\n\\tlibc.so.6 => /lib/libc.so.6\\n'\n")
        fake_ldd.chmod(0o755)
        result = self.fetch("--cuda", TRAINWRIGHT_TORCH_DIR=str(self.folder / "own"))
        self.assertEqual(result.returncode, 1)
        self.assertIn("lacks libcufile.so.0", result.stderr)

    def test_pins_of_cuda_name_all_that_libtorch_cuda_needs(self):
        pins = re.findall(r"^nvidia-([a-z-]+?)(?:-cu13)?==", (SOURCE / "scripts/libtorch-cuda.requirements.txt").read_text(),
                          re.MULTILINE)
        self.assertEqual(sorted(pins), ["cublas", "cuda-nvrtc", "cudnn", "cufft", "cufile", "curand", "cusolver", "cusparse",
                                        "cusparselt", "nccl", "nvjitlink", "nvshmem"])

    def test_cmake_scripts_and_pins_name_one_version(self):
        pins = (SOURCE / "scripts/libtorch.requirements.txt").read_text()
        version = re.search(r"^torch==(\S+)", pins, re.MULTILINE)[1]
        self.assertIn(f"torch_version={version}\n", (SOURCE / "scripts/common.sh").read_text())
        self.assertIn(f"/libtorch-{version})", (SOURCE / "cmake/LibTorch.cmake").read_text())


class FetchArrowTest(FetchTest, unittest.TestCase):
    SCRIPT = "fetch_arrow.sh"
    OTHER_WAY = "TRAINWRIGHT_ARROW_DIR"

    def test_unpacks_the_two_libraries_their_headers_and_licences_and_nothing_else(self):
        result = self.fetch()
        self.assertEqual(result.returncode, 0, result.stderr)
        root = "arrow-26.0.1/"
        self.assertEqual(self.kept(), sorted(root + name for name in [
            ".trainwright-complete", "libarrow.so.2600", "libparquet.so.2600", "include/arrow/api.h",
            "include/parquet/api.h", "licenses/LICENSE.txt"]))

    def test_cmake_scripts_and_pins_name_one_version(self):
        pins = (SOURCE / "scripts/arrow.requirements.txt").read_text()
        version = re.search(r"^pyarrow==(\S+)", pins, re.MULTILINE)[1]
        self.assertIn(f"arrow_version={version}\n", (SOURCE / "scripts/common.sh").read_text())
        self.assertIn(f"/arrow-{version})", (SOURCE / "cmake/Arrow.cmake").read_text())


class CacheFolderTest(unittest.TestCase):
    def folder(self, command, variables):
        result = subprocess.run(command, cwd=SOURCE, env={"PATH": os.environ["PATH"], "HOME": "/home/a b", **variables},
                                text=True, capture_output=True, check=True, timeout=60)
        return (result.stdout + result.stderr).strip()  # message() writes to standard error

    def test_cmake_looks_where_the_scripts_fetch_to(self):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "cache_dir.cmake"
            script.write_text(f'include("{SOURCE.resolve()}/cmake/CacheDir.cmake")\ntrainwright_cache_dir(cache)\n'
                              'message("${cache}")\n')
            for variables, expected in (({}, "/home/a b/.cache/trainwright"),
                                        ({"XDG_CACHE_HOME": ""}, "/home/a b/.cache/trainwright"),
                                        ({"XDG_CACHE_HOME": "/x y"}, "/x y/trainwright"),
                                        ({"XDG_CACHE_HOME": "/x", "TRAINWRIGHT_LIBTORCH_CACHE": ""}, "/x/trainwright"),
                                        ({"XDG_CACHE_HOME": "/x", "TRAINWRIGHT_LIBTORCH_CACHE": "/own"}, "/own")):
                self.assertEqual(self.folder(["bash", "-c", "source scripts/common.sh; cache_dir"], variables), expected)
                self.assertEqual(self.folder(["cmake", "-P", script], variables), expected)


class DriverTest(unittest.TestCase):
    """When quickstart.sh takes the libraries of CUDA, too."""

    def sees_driver(self, nvidia_smi):
        with tempfile.TemporaryDirectory() as folder:
            if nvidia_smi is not None:
                fake = pathlib.Path(folder) / "nvidia-smi"
                fake.write_text(f"#!/bin/sh\nexit {nvidia_smi}\n")
                fake.chmod(0o755)
            result = subprocess.run(["bash", "-c", "source scripts/common.sh; sees_nvidia_driver"], cwd=SOURCE, check=False,
                                    env={"PATH": f"{folder}:/usr/bin:/bin", "HOME": folder}, timeout=60)
            return result.returncode == 0

    @unittest.skipIf(list(pathlib.Path("/dev").glob("nvidia[0-9]*")), "this machine has a GPU")
    def test_a_driver_is_one_that_answers(self):
        self.assertEqual([self.sees_driver(status) for status in (None, 9, 0)], [False, False, True])


if __name__ == "__main__":
    unittest.main()
