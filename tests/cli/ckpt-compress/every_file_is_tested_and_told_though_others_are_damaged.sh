# -t goes on behind a file that is damaged or cut, and --json has an object for each of them.
cp "$TRAINWRIGHT_SOURCE_DIR/examples/data/tiny-checkpoint/model.safetensors" original
mkdir folder
ckpt-compress -q original -o folder/a.twc.safetensors
cp folder/a.twc.safetensors folder/b.twc.safetensors
head -c -100 folder/a.twc.safetensors > folder/c.twc.safetensors
cp folder/a.twc.safetensors folder/d.twc.safetensors
python3 - folder/b.twc.safetensors <<'PYTHON'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[len(data) // 2] ^= 4
open(sys.argv[1], "wb").write(data)
PYTHON
for inputs in folder 'folder/a.twc.safetensors folder/b.twc.safetensors folder/c.twc.safetensors folder/d.twc.safetensors'; do
  for going in '' --keep-going; do
    fails 3 'error: folder/b.twc.safetensors: tensor' ckpt-compress -t $going --json $inputs
    grep -q 'error: folder/c.twc.safetensors: ' err
    python3 - <<'PYTHON'
import json
told = [json.loads(line) for line in open("out")]
assert [(o["file"][7], o["sound"]) for o in told] == [("a", True), ("b", False), ("c", False), ("d", True)], told
assert all(bool(o["damage"]) != o["sound"] and all(d["message"] for d in o["damage"]) for o in told), told
PYTHON
    fails 3 'error: folder/c.twc.safetensors: ' ckpt-compress -t $going $inputs
    test "$(grep -c ': sound' out)" = 2
    test "$(grep -c ': damaged' out)" = 2
  done
done
fails 4 'error: folder/c.twc.safetensors: ' ckpt-compress -t folder/c.twc.safetensors none
grep -q 'error: none: ' err
