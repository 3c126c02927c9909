# --base makes neighbours smaller; the decoder needs that very file, plain or compressed.
status_of() { local status=0; "$@" > out 2> err || status=$?; echo "$status"; }
mkdir before after
cp "$TRAINWRIGHT_SOURCE_DIR/examples/data/tiny-checkpoint/model.safetensors" before/model.safetensors
python3 - <<'PYTHON'
data = bytearray(open("before/model.safetensors", "rb").read())
start = 8 + int.from_bytes(data[:8], "little")
for i in range(start, len(data), 10):
    data[i] ^= 1
open("after/model.safetensors", "wb").write(data)
PYTHON
ckpt-compress -q --base before/model.safetensors after/model.safetensors -o difference
ckpt-compress -q after/model.safetensors -o whole
test "$(stat -c %s difference)" -lt "$(stat -c %s whole)"
ckpt-compress -q -d --base before/model.safetensors difference -o - | cmp - after/model.safetensors
ckpt-compress -q before/model.safetensors -o before.small
ckpt-compress -q -d --base before.small difference -o - | cmp - after/model.safetensors
ckpt-compress -q -d --base before.small --tensor model.norm.weight --to raw difference -o norm
test "$(status_of ckpt-compress -d difference -o x)" = 3
grep -q 'hint: give it with --base FILE' err
test "$(status_of ckpt-compress -d --base after/model.safetensors difference -o x)" = 3
grep -q 'after/model.safetensors: is not the base that difference was compressed against' err
test "$(status_of ckpt-compress --base difference after/model.safetensors -o x)" = 3
grep -q 'needs a base itself' err
test ! -e x
# Without the base, what is stored can be checked; with it, everything.
ckpt-compress -t difference > out 2> err
grep -q 'needs its base' err
ckpt-compress -q -t --base before/model.safetensors difference > out 2> err
test ! -s err
# Folders: each file has the base of its name.
ckpt-compress -q --base before after
ckpt-compress -l after.twc | grep -q 'base [0-9a-f]\{32\}'
ckpt-compress -q -d --base before after.twc -o again
diff -r after again
