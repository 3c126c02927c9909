"""Command line of scripts/gpu-check.sh, whose head says what it does."""
import argparse
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

import bundle
import report
import steps
from runner import Runner, Settings

HERE = pathlib.Path(__file__).resolve().parent
NO_GPU = 5


def die(problem, hint, status=2):
    print(f"gpu-check: error: {problem}", file=sys.stderr)
    print(f"gpu-check: hint: {hint}", file=sys.stderr)
    sys.exit(status)


def parse(arguments):
    parser = argparse.ArgumentParser(prog="gpu-check.sh", add_help=False, allow_abbrev=False)
    parser.add_argument("--bundle")
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("gpu-check-out"))
    parser.add_argument("--only", default="")
    parser.add_argument("--skip", default="")
    parser.add_argument("--deadline", type=float)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--dry-run-device", default="cpu")
    options = parser.parse_args(arguments)
    names = [step.name for step in steps.STEPS]
    for name in filter(None, (options.only + "," + options.skip).split(",")):
        if name not in names:
            die(f"there is no step {name}", "the steps are " + ", ".join(names))
    return options


def chosen(options):
    only, skip = (set(filter(None, text.split(","))) for text in (options.only, options.skip))
    return [step for step in steps.STEPS if (not only or step.name in only) and step.name not in skip]


def has_gpu():
    if not list(pathlib.Path("/dev").glob("nvidia[0-9]*")) or not shutil.which("nvidia-smi"):
        return False
    return subprocess.run(["nvidia-smi", "-L"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


def torch_folder():
    """The folder of python3's torch, or of TRAINWRIGHT_TORCH_DIR, with CUDA's libraries."""
    named = os.environ.get("TRAINWRIGHT_TORCH_DIR")
    if named:
        folder = pathlib.Path(named)
        folder = folder / "torch" if (folder / "torch").is_dir() else folder
    else:
        spec = importlib.util.find_spec("torch")
        if spec is None:
            die("python3 finds no torch", "install torch 2.11.0 for CUDA 13, or name its folder by TRAINWRIGHT_TORCH_DIR")
        folder = pathlib.Path(spec.submodule_search_locations[0])
    if not (folder / "lib/libtorch_cuda.so").exists():
        die(f"{folder}/lib holds no libtorch_cuda.so", "a CUDA build of torch is needed")
    return folder


def settings_of(options):
    bundled = (HERE.parent / "bin").is_dir()
    source = HERE.parent.parent
    root = options.build or (HERE.parent if bundled else source / "build/cuda")
    if not (root / "bin/train").exists():
        die(f"{root} holds no bin/train", "unpack a bundle (gpu-check.sh --bundle FILE.tar.xz), or name a build by --build")
    out = options.out.resolve()
    settings = Settings(root=root.resolve(), data=HERE.parent / "tinyshakespeare.txt" if bundled else
                        source / "examples/data/tinyshakespeare.txt", fixtures=HERE.parent / "fixtures" if bundled else
                        source / "tests", out=out, work=out.with_name(out.name + ".work"), deadline_s=options.deadline)
    if options.dry_run:
        settings.device, settings.tiny = options.dry_run_device, True
        return settings
    if not has_gpu():
        print("gpu-check: no GPU: NOT RUN", file=sys.stderr)
        sys.exit(NO_GPU)
    if not (root / "libexec/trainwright" / bundle.CUDA_PLUGIN).exists():
        die(f"{root} has no {bundle.CUDA_PLUGIN}", "make a bundle of `cmake --preset cuda`; this one is for --dry-run")
    settings.torch = torch_folder()
    return settings


def main():
    options = parse(sys.argv[1:])
    if options.bundle:
        build = options.build or bundle.SOURCE / "build/cuda"
        try:
            print(f"gpu-check: {options.bundle}, {bundle.make(options.bundle, build):,} bytes; unpack it there by "
                  f"`{bundle.unpack_command(pathlib.Path(options.bundle).name)}`")
            if not bundle.has_cuda_plugin(build):
                print("gpu-check: the build has no CUDA plugin: the bundle is for --dry-run")
        except bundle.BundleError as error:
            die(str(error), error.hint)
        return 0
    if options.list:
        for step in chosen(options):
            print(f"{step.name:22}{step.limit_s:4} s  {(step.run.__doc__ or '').splitlines()[0] if step.run.__doc__ else ''}".rstrip())
        print(f"{'in all':22}{sum(step.limit_s for step in chosen(options)):4} s  at most")
        return 0
    settings = settings_of(options)
    whole = Runner(settings).run_all(chosen(options))
    if (settings.out / "steps.jsonl").exists():
        report.write(settings.out)
        print(f"gpu-check: {settings.out}/report.md")
    return 0 if whole else 1


sys.exit(main())
