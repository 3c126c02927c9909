# -l and -t say of a plain safetensors file that it is not compressed.
cp "$TRAINWRIGHT_SOURCE_DIR/examples/data/tiny-checkpoint/model.safetensors" plain
for way in -l -t '-t --keep-going'; do
  fails 3 'error: plain: is not compressed' ckpt-compress $way plain
  test "$(cat out)" = 'plain: not compressed'
done
