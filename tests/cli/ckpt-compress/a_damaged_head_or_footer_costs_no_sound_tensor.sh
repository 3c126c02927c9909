# --keep-going restores all tensors of a file whose own header, or whose footer, is damaged, and -t names that damage.
original=$TRAINWRIGHT_SOURCE_DIR/examples/data/tiny-checkpoint/model.safetensors
for form in safetensors stream; do
  ckpt-compress -q --to $form "$original" -o good
  for mark in trainwright.level 'TWC END'; do
    if [ "$form $mark" = 'safetensors TWC END' ]; then continue; fi
    python3 - "$mark" <<'PYTHON'
import sys
data = bytearray(open("good", "rb").read())
data[data.rindex(sys.argv[1].encode()) + 1] ^= 4
open("bad", "wb").write(data)
PYTHON
    fails 3 'error: bad: ' ckpt-compress -d bad -o restored
    test ! -e restored
    fails 3 'error: bad: ' ckpt-compress -d --keep-going bad -o restored
    cmp restored "$original"
    fails 3 'error: bad: ' ckpt-compress -t --keep-going --json bad
    python3 -c 'import json
j = json.load(open("out"))
assert not j["sound"] and j["tensors_lost"] == 0 and j["tensors"] == 11, j
assert [(d["tensor"], d["block"]) for d in j["damage"]] == [(None, None)] and j["damage"][0]["message"], j'
    ckpt-compress -d --tensor model.norm.weight --to raw bad -o part 2> err
    grep -q 'warning: bad: ' err
    ckpt-compress -q -d --tensor model.norm.weight --to raw good | cmp - part
    rm bad restored part
  done
  rm good
done

# A stream that is cut in its last tensor.
ckpt-compress -q --to stream "$original" -o good
head -c -200 good > bad
fails 3 'rest lacks 1 of 11 tensors' ckpt-compress -d --keep-going bad -o rest
grep -aq 'trainwright.lost' rest
ckpt-compress -q rest -o rest.small
test "$(ckpt-compress -l rest.small | grep -c BF16)" = 10
