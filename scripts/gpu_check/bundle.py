"""Packs what the check needs on another machine: tools, tests, plugins, fixtures and the check itself, without torch and CUDA."""
import pathlib
import re
import shutil
import subprocess
import tempfile

MOST_BYTES_SENT = 64 << 20  # at once to a leased machine: the bundle and the tracked files of the clone
HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
TOOLS = ("train", "evaluate", "generate", "gpu-probe", "pretokenize", "pack")
ENGINES = ("train-engine", "evaluate-engine", "generate-engine", "gpu-probe-engine", "libtrainwright_cuda.so",
           "libtrainwright_nccl.so")
TESTS = ("nn_test", "device_test", "optim_test", "train_test", "kernel_speed")
# Of the machine that runs them.
NOT_CARRIED = re.compile(r"/(libc|libm|libdl|libpthread|librt|libutil|libgomp|ld-linux[^/]*|libcu[^/]*|libtorch[^/]*|libc10[^/]*)\.so")


class BundleError(Exception):
    def __init__(self, problem, hint):
        super().__init__(problem)
        self.hint = hint


def tracked_bytes():
    """Uncompressed: a bundle that fits beside them so fits however they travel."""
    listed = shutil.which("git") and subprocess.run(["git", "-C", SOURCE, "ls-files", "-z"], text=True, capture_output=True,
                                                    check=False)
    if listed and listed.stdout:
        paths = [SOURCE / name for name in listed.stdout.split("\0") if name]
    else:  # no clone, or another user's: all but what is built
        folders = [path for path in SOURCE.iterdir() if path.name != "build" and not path.name.startswith(".")]
        paths = [path for folder in folders for path in (folder, *folder.rglob("*"))]
    return sum(path.lstat().st_size for path in paths if path.is_file())


def bytes_left():
    """For the bundle, beside the tracked files."""
    return MOST_BYTES_SENT - tracked_bytes()


def libraries_of(programs):
    """The small libraries of the system that the other machine may lack."""
    found = set()
    for program in programs:
        listed = subprocess.run(["ldd", program], text=True, capture_output=True, check=True).stdout
        found.update(re.findall(r"=> (/(?:usr/)?lib\S+)", listed))
    return sorted(path for path in found if not NOT_CARRIED.search(path))


def fill(folder, build):
    programs = ([f"bin/{name}" for name in TOOLS] + [f"libexec/trainwright/{name}" for name in ENGINES] +
                [f"tests/{name}" for name in TESTS])
    for name in programs:
        if not (build / name).exists():
            if name.endswith("_nccl.so"):  # built where nccl.h is
                continue
            raise BundleError(f"{build / name} is not built", "cmake --preset cuda && cmake --build --preset cuda")
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["strip", "-o", folder / name, build / name], check=True)
    (folder / "lib").mkdir()
    for library in libraries_of(build / name for name in programs if (build / name).exists() and not name.endswith(".so")):
        shutil.copy(library, folder / "lib")  # follows links
    for fixtures in sorted((SOURCE / "tests").glob("*/fixtures")):
        shutil.copytree(fixtures, folder / "fixtures" / fixtures.parent.name / "fixtures")
    shutil.copytree(HERE, folder / "gpu_check", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(SOURCE / "scripts/gpu-check.sh", folder)
    shutil.copy(SOURCE / "examples/data/tinyshakespeare.txt", folder)


def make(file, build, most_bytes=None):
    """\\param most_bytes if not those that are left
    \\returns its size; nothing stays where it would be too large"""
    file = pathlib.Path(file)
    if most_bytes is None:
        most_bytes = bytes_left()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch) / "gpu-check"
        folder.mkdir()
        fill(folder, build)
        packed = pathlib.Path(scratch) / "packed"
        with packed.open("wb") as out:
            # The engines have most of their code in common: --long finds it, within what any zstd unpacks unasked.
            subprocess.run(["tar", "-C", scratch, "--sort=name", "--owner=0", "--group=0", "-I", "zstd -q -12 --long=27", "-cf",
                            "-", "gpu-check"], stdout=out, check=True)
        size = packed.stat().st_size
        if size > most_bytes:
            files = sorted((path for path in folder.rglob("*") if path.is_file()), key=lambda path: -path.stat().st_size)
            largest = ", ".join(f"{path.relative_to(folder)} {path.stat().st_size / 2**20:.0f} MiB" for path in files[:6])
            raise BundleError(f"the bundle has {size / 2**20:.1f} MiB, more than {most_bytes / 2**20:.1f}",
                              f"unpacked the largest are {largest}")
        shutil.move(packed, file)
    return size
