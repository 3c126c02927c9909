# An error that a write to standard output meets, even at the very end, is status 4.
status_of() {
  local status=0
  "$@" 2> err || status=$?
  echo "$status"
}
for tool in $BUILT_TOOLS; do
  test "$(status_of bash -c "$tool --version > /dev/full")" = 4
  test "$(status_of bash -c "$tool --print-config > /dev/full")" = 4
  test "$(status_of bash -c "$tool --version >&-")" = 4
done
echo 'to be or not to be' > text
pretokenize -q text > tokens
test "$(status_of bash -c 'pretokenize text > /dev/full')" = 4
test "$(status_of bash -c 'pretokenize --to jsonl text > /dev/full')" = 4
test "$(status_of bash -c 'pack tokens > /dev/full')" = 4
ckpt-compress -q "$TRAINWRIGHT_SOURCE_DIR/examples/data/tiny-checkpoint/model.safetensors" -o small
test "$(status_of bash -c 'ckpt-compress --to stream small -o - > /dev/full')" = 4
test "$(status_of bash -c 'ckpt-compress --to safetensors small -o - > /dev/full')" = 4
test "$(status_of bash -c 'ckpt-compress -d < small > /dev/full')" = 4
test "$(status_of bash -c 'ckpt-compress -d small -o /dev/full')" = 4
test "$(status_of bash -c 'ckpt-compress -l small > /dev/full')" = 4
test "$(status_of bash -c 'ckpt-compress -t small > /dev/full')" = 4
