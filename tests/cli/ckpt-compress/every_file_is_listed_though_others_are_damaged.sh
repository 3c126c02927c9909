# -l goes on after a file that it cannot list, and --json has an object for each of them.
cp "$TRAINWRIGHT_SOURCE_DIR/examples/data/tiny-checkpoint/model.safetensors" original
mkdir folder
ckpt-compress -q original -o folder/a.twc.safetensors
for name in b c; do cp folder/a.twc.safetensors folder/$name.twc.safetensors; done
head -c 100 folder/a.twc.safetensors > folder/b.twc.safetensors
for inputs in folder 'folder/a.twc.safetensors folder/b.twc.safetensors folder/c.twc.safetensors'; do
  fails 3 'error: folder/b.twc.safetensors: ' ckpt-compress -l $inputs
  test "$(grep -c '^folder/[ac].twc.safetensors: safetensors, level default' out)" = 2
  grep -qx 'folder/b.twc.safetensors: damaged' out
  fails 3 'error: folder/b.twc.safetensors: ' ckpt-compress -l --json $inputs
  python3 - <<'PYTHON'
import json
listed = [json.loads(line) for line in open("out")]
assert [(o["file"][7], "tensors" in o) for o in listed] == [("a", True), ("b", False), ("c", True)], listed
assert listed[1]["damage"][0]["message"].startswith("folder/b.twc.safetensors: "), listed
PYTHON
done
fails 4 'error: folder/b.twc.safetensors: ' ckpt-compress -l folder/b.twc.safetensors none
grep -q 'error: none: ' err
