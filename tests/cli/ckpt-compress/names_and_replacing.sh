# Outputs lie beside the inputs, and nothing is replaced without -f.
status_of() { local status=0; "$@" > out 2> err || status=$?; echo "$status"; }
cp "$TRAINWRIGHT_SOURCE_DIR/examples/data/tiny-checkpoint/model.safetensors" a.safetensors
cp a.safetensors b.safetensors
ckpt-compress -q a.safetensors b.safetensors
ckpt-compress -q --to stream a.safetensors
cmp a.twc.safetensors b.twc.safetensors
test -s a.safetensors.twc
test "$(status_of ckpt-compress a.safetensors)" = 2
grep -q 'a.twc.safetensors: exists already' err
grep -q 'hint: .*-f' err
test "$(status_of ckpt-compress -d a.twc.safetensors)" = 2
echo old > b.twc.safetensors
ckpt-compress -q -f b.safetensors
cmp a.twc.safetensors b.twc.safetensors
# Restoring, also in place of the original.
ckpt-compress -q -d -f a.twc.safetensors
cmp a.safetensors b.safetensors
rm a.safetensors
ckpt-compress -q -d a.safetensors.twc
cmp a.safetensors b.safetensors
# A folder takes the place of a folder at once.
mkdir ckpt
cp a.safetensors ckpt/model.safetensors
ckpt-compress -q ckpt
test "$(status_of ckpt-compress ckpt)" = 2
ckpt-compress -q --fast -f ckpt
ckpt-compress -l ckpt.twc | grep -q 'level fast'
test "$(status_of ckpt-compress ckpt -o ckpt/inside)" = 2
# What has no name of its own, or makes no sense.
cp a.safetensors weights.bin
test "$(status_of ckpt-compress weights.bin)" = 2
test "$(status_of ckpt-compress -d weights.bin)" = 2
test "$(status_of ckpt-compress -d -o x a.safetensors)" = 3
test "$(status_of ckpt-compress a.twc.safetensors -o x)" = 2
grep -q 'is compressed already' err
test "$(status_of ckpt-compress a.safetensors b.safetensors -o x)" = 2
test "$(status_of ckpt-compress --fast --max a.safetensors -o x)" = 2
test "$(status_of ckpt-compress --tensor a a.safetensors -o x)" = 2
test "$(status_of ckpt-compress --to raw a.safetensors -o x)" = 2
test "$(status_of ckpt-compress no-such-file.safetensors)" = 4
test ! -e x
test -z "$(ls -A | grep tmp || true)"
