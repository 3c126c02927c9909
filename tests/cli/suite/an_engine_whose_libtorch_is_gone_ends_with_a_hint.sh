# Where LibTorch has been removed, or may not be read, the tool says so with status 4; the loader alone would end it with 127.
[[ " $BUILT_TOOLS " == *" train "* ]] || exit 0
unset LD_LIBRARY_PATH
mkdir -p moved/bin moved/libexec/trainwright
# Copies that look elsewhere.
folder=$(python3 - "$(command -v train)" << 'PYTHON'
import pathlib, re, subprocess, sys
built, moved = pathlib.Path(sys.argv[1]).resolve().parent.parent, pathlib.Path("moved")
names = ("bin/train", "libexec/trainwright/train-engine")
dynamic = subprocess.run(["readelf", "-d", built / names[1]], check=True, text=True, capture_output=True).stdout
folder = re.search(r"\(R(?:UN)?PATH\).*\[(.*)\]", dynamic)[1].split(":")[0]
for name in names:
    program = (built / name).read_bytes()
    assert folder.encode() in program, name
    (moved / name).write_bytes(program.replace(folder.encode(), b"/gone".ljust(len(folder), b"_")))
    (moved / name).chmod(0o755)
print(folder)
PYTHON
)
test -e "$folder/libtorch_cpu.so"
fails 4 'moved/libexec/trainwright/train-engine: needs libtorch_cpu.so, which is not in /gone_' moved/bin/train --steps 1
grep -q '^train: hint: .*scripts/fetch_libtorch.sh' err
moved/bin/train --help > help
# What the loader finds by other means is no error: this one is the engine's.
fails 2 'did you mean --progress' env LD_LIBRARY_PATH="$folder" moved/bin/train --progres never
