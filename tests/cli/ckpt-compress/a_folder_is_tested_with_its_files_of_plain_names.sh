# -t of a folder finds damage in a file that is compressed under its plain name, as train --compress-state writes it, and -l lists it.
original=$TRAINWRIGHT_SOURCE_DIR/examples/data/tiny-checkpoint/model.safetensors
mkdir folder
cp "$original" folder/model.safetensors
ckpt-compress -q "$original" -o folder/trainwright_state.safetensors
ckpt-compress -q folder
state=folder.twc/trainwright_state.safetensors
ckpt-compress -t folder.twc > out
grep -q "$state: sound" out
ckpt-compress -l folder.twc > out
grep -q "$state: safetensors" out
python3 - "$state" <<'PYTHON'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[len(data) // 2] ^= 4
open(sys.argv[1], "wb").write(data)
PYTHON
fails 3 "error: $state: tensor" ckpt-compress -t folder.twc
