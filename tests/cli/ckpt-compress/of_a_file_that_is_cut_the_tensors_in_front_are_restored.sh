# --keep-going restores what lies in front of the end of a file that is cut, and all of the other files of its folder.
cp "$TRAINWRIGHT_SOURCE_DIR/examples/data/tiny-checkpoint/model.safetensors" original
mkdir folder
ckpt-compress -q original -o folder/a.twc.safetensors
head -c -10 folder/a.twc.safetensors > folder/b.twc.safetensors
cp folder/a.twc.safetensors folder/c.twc.safetensors
cut=folder/b.twc.safetensors
python3 - > names <<'PYTHON'
import json, subprocess
listed = subprocess.run(["ckpt-compress", "-l", "--json", "folder/a.twc.safetensors"], capture_output=True, check=True).stdout
tensors = json.loads(listed)["tensors"]
print(tensors[0]["name"], tensors[-1]["name"], len(tensors))
PYTHON
read -r first last tensors < names

fails 3 "error: $cut: " ckpt-compress -d $cut -o rest.safetensors
test ! -e rest.safetensors
fails 3 "error: $cut: tensor '$last': the compressed checkpoint ends too early" \
  ckpt-compress -d --keep-going $cut -o rest.safetensors
grep -q "rest.safetensors lacks 1 of $tensors tensors" err
grep -aq "trainwright.lost.*$last" rest.safetensors
fails 3 "tensor '$last'" ckpt-compress -t --keep-going $cut
fails 3 'ends too early' ckpt-compress -l $cut

fails 3 "tensor '$last'" ckpt-compress -d --keep-going folder -o restored
cmp restored/a.safetensors original
cmp restored/b.safetensors rest.safetensors
cmp restored/c.safetensors original

ckpt-compress -q -d --tensor "$first" --to raw folder/a.twc.safetensors -o whole
ckpt-compress -q -d --tensor "$first" --to raw $cut -o - | cmp - whole
fails 3 "tensor '$last'" ckpt-compress -d --tensor "$last" --to raw $cut -o none
test ! -e none
