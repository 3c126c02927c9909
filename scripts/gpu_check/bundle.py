"""Packs what the check needs on another machine: tools, tests, plugins, fixtures and the check itself, without torch and CUDA.

The file is a .tar.xz, which python3 unpacks by itself: the check needs python3 anyway, and may find neither zstd nor xz there.
"""
import lzma
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile

MOST_BYTES_SENT = 64 << 20  # at once to a leased machine: the bundle and the tracked files of the clone
HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
TOOLS = ("train", "evaluate", "generate", "gpu-probe", "pretokenize", "pack")
CUDA_PLUGIN = "libtrainwright_cuda.so"
ENGINES = ("train-engine", "evaluate-engine", "generate-engine", "gpu-probe-engine", CUDA_PLUGIN, "libtrainwright_nccl.so")
TESTS = ("nn_test", "device_test", "train_test")  # those with cases of a GPU, which have cuda in their names
PROGRAMS = (*TESTS, "kernel_speed")
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


def has_cuda_plugin(build):
    """Whether the build was configured with it, or is one that does not say."""
    cache = build / "CMakeCache.txt"
    setting = re.search(r"^TRAINWRIGHT_CUDA:\w+=(.*)$", cache.read_text() if cache.exists() else "", re.MULTILINE)
    return setting is None or setting[1].upper() in ("ON", "TRUE", "YES", "Y", "1")


def fill(folder, build):
    programs = ([f"bin/{name}" for name in TOOLS] + [f"libexec/trainwright/{name}" for name in ENGINES] +
                [f"tests/{name}" for name in PROGRAMS])
    for name in programs:
        if not (build / name).exists():
            if name.endswith("_nccl.so"):  # built where nccl.h is
                continue
            if name.endswith(CUDA_PLUGIN) and not has_cuda_plugin(build):
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


def pack(folder, file):
    """\\param folder by whose name the file unpacks"""
    # The engines have most of their code in common: a window of 64 MiB finds it, and unpacking takes as much memory. Preset 6
    # would take 12 % fewer bytes and four times as long.
    filters = [{"id": lzma.FILTER_X86}, {"id": lzma.FILTER_LZMA2, "preset": 1, "dict_size": 64 << 20}]

    def nobodys(entry):
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        return entry

    with lzma.open(file, "wb", filters=filters) as packed, tarfile.open(fileobj=packed, mode="w|") as archive:
        archive.add(folder, folder.name, filter=nobodys)  # in the order of the names


def unpack_command(file):
    """That python3 runs anywhere, into the folder gpu-check."""
    return f"python3 -W ignore -m tarfile -e {file}"  # 3.12 and 3.13 warn of what 3.14 does


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
        pack(folder, packed)
        size = packed.stat().st_size
        if size > most_bytes:
            files = sorted((path for path in folder.rglob("*") if path.is_file()), key=lambda path: -path.stat().st_size)
            largest = ", ".join(f"{path.relative_to(folder)} {path.stat().st_size / 2**20:.0f} MiB" for path in files[:6])
            raise BundleError(f"the bundle has {size / 2**20:.1f} MiB, more than {most_bytes / 2**20:.1f}",
                              f"unpacked the largest are {largest}")
        shutil.move(packed, file)
    return size
