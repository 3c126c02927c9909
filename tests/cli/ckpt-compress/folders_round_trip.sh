# A folder comes back as it was, with or without a base; what is compressed already is not compressed again.
status_of() { local status=0; "$@" > out 2> err || status=$?; echo "$status"; }
original=$TRAINWRIGHT_SOURCE_DIR/examples/data/tiny-checkpoint/model.safetensors
# Some tensors of another checkpoint of the same shapes.
neighbour_of() {
  python3 - "$1" "$2" <<'PYTHON'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
for i in range(8 + int.from_bytes(data[:8], "little"), len(data), 10):
    data[i] ^= 1
open(sys.argv[2], "wb").write(data)
PYTHON
}
mkdir -p before/sub/empty
cp "$original" before/model.safetensors
cp "$original" before/sub/model.safetensors
echo '{}' > before/config.json
echo notes > before/sub/.hidden
cp -r before after
neighbour_of "$original" after/model.safetensors
cp after/model.safetensors after/sub/new.safetensors

# Names: with a slash, and of folders that are given as . and from inside.
ckpt-compress -q before/
(cd before/sub && ckpt-compress -q ..) 2> err && exit 1 || test $? = 2
grep -q 'before.twc: exists already' err
mv before kept
(cd before.twc && ckpt-compress -q -d .)
diff -r before kept
rm -r before.twc
(cd before && ckpt-compress -q .)
test "$(ls -A | tr '\n' ' ')" = 'after before before.twc err kept '

# Twice: refused, also with -f, and nothing has changed.
cp -r before.twc first
for force in '' -f; do
  test "$(status_of ckpt-compress $force before.twc)" = 2
  grep -q 'before.twc: is compressed already (before.twc/model.twc.safetensors)' err
  grep -q 'hint: -d restores it' err
  test "$(status_of ckpt-compress $force before.twc -o again)" = 2
done
test "$(status_of ckpt-compress before)" = 2
grep -q 'before.twc: exists already' err
ckpt-compress -q -f before
diff -r before.twc first
test ! -e again
test ! -e before.twc.twc

# One file of a folder compressed beside itself: the folder is refused before anything is written.
cp -r before half
ckpt-compress -q half/model.safetensors
test "$(status_of ckpt-compress half)" = 2
grep -q 'half/model.twc.safetensors: is compressed already, beside files that are not' err
test ! -e half.twc

# A file that is compressed under a plain name, as train --compress-state writes it, stays as it is.
cp -r before mixed
ckpt-compress -q "$original" -o mixed/trainwright_state.safetensors
test "$(status_of ckpt-compress mixed)" = 0
grep -q 'mixed/trainwright_state.safetensors: is compressed already, copied as it is' err
cmp mixed/trainwright_state.safetensors mixed.twc/trainwright_state.safetensors
ckpt-compress -q -d mixed.twc -o mixed.again
diff -r mixed mixed.again
rm mixed/model.safetensors mixed/sub/model.safetensors
test "$(status_of ckpt-compress -f mixed)" = 2
grep -q 'mixed: is compressed already' err

# Rewritten into the other form and back.
ckpt-compress -q --to stream before.twc -o streams
test -s streams/model.safetensors.twc
test -s streams/sub/model.safetensors.twc
ckpt-compress -q -d streams -o from_streams
diff -r before from_streams
ckpt-compress -q --to safetensors streams -o containers
diff -r before.twc containers
test "$(status_of ckpt-compress --to stream half -o none)" = 2
test "$(status_of ckpt-compress --to stream streams -o streams -f)" = 2

# A base that is a folder, plain or compressed, in either form; of a file the one with its name.
for base in before before.twc streams; do
  rm -rf after.twc again
  ckpt-compress -q --base $base after
  ckpt-compress -q -t --base $base after.twc > out
  ckpt-compress -q -d --base $base after.twc -o again
  diff -r after again
  ckpt-compress -q --base $base after/model.safetensors -o one -f
  cmp one after.twc/model.twc.safetensors
  ckpt-compress -q -d --base $base after.twc/model.twc.safetensors -o - | cmp - after/model.safetensors
done
ckpt-compress -l after.twc/model.twc.safetensors | grep -q 'base [0-9a-f]\{32\}'
test "$(status_of ckpt-compress -d after.twc -o none)" = 3
grep -q 'hint: give it with --base' err
test "$(status_of ckpt-compress --base after.twc before -o none)" = 3
mkdir empty
test "$(status_of ckpt-compress --base empty after -o none)" = 2
grep -q 'empty: holds no base for any file of after' err
test "$(status_of ckpt-compress --base empty after/model.safetensors -o none)" = 2
test "$(status_of ckpt-compress --base before after/sub/new.safetensors -o none)" = 2

# What is read is never replaced.
mkdir outer
cp -r before outer/inner
for arguments in 'outer/inner -o outer' 'before -o before' '--base outer/inner after -o outer' \
                 'after/model.safetensors -o after/model.safetensors' \
                 '--base before/model.safetensors after/model.safetensors -o before/model.safetensors' \
                 '-d before.twc -o before.twc' '-d --base outer/inner after.twc -o outer'; do
  test "$(status_of ckpt-compress -f $arguments)" = 2 || { echo "$arguments"; cat err; exit 1; }
done
diff -r outer/inner before
diff -r before kept

# Two files that would get one name.
cp before/model.safetensors before.twc/model.safetensors
for force in '' -f; do
  test "$(status_of ckpt-compress -d $force before.twc -o none)" = 2
  grep -q 'would take the place of another file (model.safetensors)' err
done
test ! -e none
test -z "$(find . -name '*tmp-*')"
