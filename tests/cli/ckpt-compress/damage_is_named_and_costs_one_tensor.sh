# A flipped byte: exit status 3 with tensor, block and offset; everything else can still be had.
original=$TRAINWRIGHT_SOURCE_DIR/examples/data/tiny-checkpoint/model.safetensors
status_of() { local status=0; "$@" > out 2> err || status=$?; echo "$status"; }
victim=model.layers.0.mlp.up_proj.weight other=model.layers.0.mlp.down_proj.weight
for form in safetensors stream; do
  ckpt-compress -q --to $form "$original" -o good
  python3 - "$victim" <<'PYTHON'
import json, subprocess, sys
# The last byte in front of the index of the tensor, which is 12 bytes for one block.
listed = json.loads(subprocess.run(["ckpt-compress", "-l", "--json", "good"], capture_output=True, check=True).stdout)
data = bytearray(open("good", "rb").read())
if listed["form"] == "stream":
    offset = 24 + int.from_bytes(data[8:16], "little")
else:
    offset = 8 + int.from_bytes(data[:8], "little")
for tensor in listed["tensors"]:
    offset += tensor["compressed_bytes"]
    if tensor["name"] == sys.argv[1]:
        break
data[offset - 13] ^= 4
open("bad", "wb").write(data)
PYTHON
  for command in "-t bad" "-d bad -o restored"; do
    test "$(status_of ckpt-compress $command)" = 3
    grep -q "error: bad: tensor '$victim': block 0 is corrupt: its hash differs (byte [0-9]*)" err
    test ! -e restored
  done
  test "$(status_of ckpt-compress -t - < bad)" = 3
  grep -q "tensor '$victim'" err
  test "$(status_of ckpt-compress -t --keep-going --json bad)" = 3
  python3 -c 'import json; j = json.load(open("out")); assert j["tensors_lost"] == 1 and j["damage"][0]["block"] == 0 and not j["sound"], j'
  test "$(status_of ckpt-compress -d --keep-going bad -o rest.safetensors)" = 3
  grep -q 'lacks 1 of 11 tensors' err
  test "$(status_of ckpt-compress -d --tensor $victim bad -o one)" = 3
  test ! -e one
  ckpt-compress -q -d --tensor $other --to raw bad -o other.raw
  ckpt-compress -q -d --tensor $other --to raw good | cmp - other.raw
  # The rest is a file of its own that says what it lacks.
  ckpt-compress -q rest.safetensors -o rest.small
  test "$(ckpt-compress -l rest.small | grep -c BF16)" = 10
  grep -aq "trainwright.lost.*$victim" rest.safetensors
  # Nothing lost: the original itself.
  ckpt-compress -q -d --keep-going good -o - | cmp - "$original"
  rm -f good bad rest.safetensors rest.small other.raw
done
