#!/usr/bin/env python3
"""How many compilers and tests the scripts run at once: what the machine has, or the control groups of a container leave.

usage: build_jobs_test.py SOURCE_DIR
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv.pop(1)).resolve()
GIB = 1 << 30
HOST = {"proc/meminfo": "MemTotal:       268435456 kB\nMemFree:        1 kB\nMemAvailable:   251658240 kB\n"}  # 256 and 240 GiB
OF_VERSION_2 = HOST | {"proc/self/cgroup": "0::/\n"}


class BuildJobsTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def ask(self, question, files, processors=64, **variables):
        """\param files of the machine, by their paths below its root"""
        machine = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        for name, text in (files | {"bin/nproc": f"#!/bin/sh\necho {processors}\n"}).items():
            (machine / name).parent.mkdir(parents=True, exist_ok=True)
            (machine / name).write_text(text)
        (machine / "bin/nproc").chmod(0o755)
        ran = subprocess.run(["bash", "-euo", "pipefail", "-c", f"source scripts/common.sh; {question}"],
                             cwd=SOURCE, env={"PATH": f"{machine}/bin:/usr/bin:/bin", "machine_root": str(machine), **variables},
                             text=True, capture_output=True, check=True, timeout=60)
        self.assertEqual(ran.stderr, "")
        return int(ran.stdout)

    def test_without_limits_are_as_many_as_processors_or_as_memory_holds(self):
        self.assertEqual(self.ask("build_jobs", HOST), 64)
        self.assertEqual(self.ask("build_jobs", HOST, processors=500), 120)
        self.assertEqual(self.ask("build_jobs", {"proc/meminfo": "MemAvailable: 1024 kB\n"}), 1)
        self.assertEqual(self.ask("build_jobs", {}), 64)

    def test_memory_of_a_group_limits_them(self):
        limit = {"sys/fs/cgroup/memory.max": f"{8 * GIB}\n"}
        self.assertEqual(self.ask("build_jobs", OF_VERSION_2 | limit), 4)
        # Caches are given up where memory is needed.
        held = {"sys/fs/cgroup/memory.stat": f"anon {5 * GIB}\nfile {2 * GIB}\n", "sys/fs/cgroup/memory.current": f"{7 * GIB}\n"}
        self.assertEqual(self.ask("build_jobs", OF_VERSION_2 | limit | held), 1)

    def test_processors_of_a_group_limit_them(self):
        for quota, expected in (("400000 100000", 4), ("150000 100000", 2), ("max 100000", 64)):
            self.assertEqual(self.ask("build_jobs", OF_VERSION_2 | {"sys/fs/cgroup/cpu.max": quota + "\n"}), expected)

    def test_limits_of_the_groups_above_count(self):
        files = HOST | {"proc/self/cgroup": "0::/jobs/one\n", "sys/fs/cgroup/jobs/one/memory.max": "max\n",
                        "sys/fs/cgroup/jobs/memory.max": f"{6 * GIB}\n", "sys/fs/cgroup/jobs/one/cpu.max": "1000000 100000\n"}
        self.assertEqual(self.ask("build_jobs", files), 3)
        self.assertEqual(self.ask("available_cores", files), 10)

    def test_groups_of_version_1_count(self):
        groups = {"proc/self/cgroup": "4:memory:/docker/a:b\n2:cpu,cpuacct:/docker/a:b\n1:name=systemd:/\n"}
        limits = {"sys/fs/cgroup/memory/memory.limit_in_bytes": f"{8 * GIB}\n",
                  "sys/fs/cgroup/memory/memory.stat": f"cache {GIB}\nrss 1\ntotal_rss {2 * GIB}\n",
                  "sys/fs/cgroup/cpu/docker/a:b/cpu.cfs_quota_us": "1600000\n",
                  "sys/fs/cgroup/cpu/docker/a:b/cpu.cfs_period_us": "100000\n"}
        self.assertEqual(self.ask("build_jobs", HOST | groups | limits), 3)
        self.assertEqual(self.ask("available_cores", HOST | groups | limits), 16)
        none = {"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}
        self.assertEqual(self.ask("build_jobs", HOST | groups | none), 64)

    def test_variables_override_them(self):
        self.assertEqual(self.ask("build_jobs", HOST, CMAKE_BUILD_PARALLEL_LEVEL="7"), 7)
        self.assertEqual(self.ask("test_jobs", HOST, CTEST_PARALLEL_LEVEL="5"), 5)

    def test_tests_are_as_many_as_processors_or_as_memory_holds(self):
        limits = {"sys/fs/cgroup/memory.max": f"{8 * GIB}\n"}
        self.assertEqual(self.ask("test_jobs", HOST), 64)
        self.assertEqual(self.ask("test_jobs", OF_VERSION_2 | limits), 8)

    def test_the_pool_of_the_build_folder_does_not_depend_on_what_else_runs(self):
        held = {"sys/fs/cgroup/memory.max": f"{8 * GIB}\n", "sys/fs/cgroup/memory.stat": f"anon {7 * GIB}\n"}
        self.assertEqual(self.ask("compilers_in_memory MemTotal", OF_VERSION_2 | held), 4)


if __name__ == "__main__":
    unittest.main()
