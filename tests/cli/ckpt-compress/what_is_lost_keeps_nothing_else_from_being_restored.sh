# With --keep-going a file of which nothing can be restored is named, and the others of its folder, and the other inputs, are restored.
cp "$TRAINWRIGHT_SOURCE_DIR/examples/data/tiny-checkpoint/model.safetensors" original
mkdir folder lost
ckpt-compress -q original -o folder/a.twc.safetensors
for name in b c d; do cp folder/a.twc.safetensors folder/$name.twc.safetensors; done
echo '{}' > folder/config.json
python3 - <<'PYTHON'
for name in "bc":
    path = f"folder/{name}.twc.safetensors"
    data = bytearray(open(path, "rb").read())
    size = int.from_bytes(data[:8], "little")
    data[8:8 + size] = bytes(size)
    open(path, "wb").write(data)
PYTHON
cp folder/b.twc.safetensors lost

fails 3 'error: folder/b.twc.safetensors: ' ckpt-compress -d folder -o none
test ! -e none
fails 3 'error: folder/b.twc.safetensors: ' ckpt-compress -d --keep-going folder -o restored
grep -q 'error: folder/c.twc.safetensors: ' err
grep -q 'warning: restored lacks 2 of 4 files' err
test "$(ls restored | tr '\n' ' ')" = 'a.safetensors config.json d.safetensors '
cmp restored/a.safetensors original
cmp restored/d.safetensors original
fails 3 'error: lost/b.twc.safetensors: ' ckpt-compress -d --keep-going lost -o none
test ! -e none

for name in b c; do
  fails 3 "error: folder/$name.twc.safetensors: " ckpt-compress -d --keep-going folder/[a-d].twc.safetensors
  cmp folder/a.safetensors original
  cmp folder/d.safetensors original
  test ! -e folder/$name.safetensors
  rm folder/[ad].safetensors
done
