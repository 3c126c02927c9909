# Of a folder whose model.safetensors is compressed under that name, as train --compress-model writes it, -d, -l and -t say which
# file to name instead, and that file is then restored.
python3 - << 'PYTHON'
import json, struct
header = json.dumps({"a": {"dtype": "F32", "shape": [3000], "data_offsets": [0, 12000]}}).encode()
header += b" " * (-len(header) % 8)
open("plain.safetensors", "wb").write(struct.pack("<Q", len(header)) + header + struct.pack("<3000f", *range(3000)))
PYTHON
mkdir folder
ckpt-compress -q plain.safetensors -o folder/model.safetensors
for action in "-d -o restored" -l -t; do
  status=0
  ckpt-compress -q $action folder 2> told || status=$?
  test "$status" = 3 || { echo "$action: $status"; cat told; exit 1; }
  grep -q 'model.safetensors is compressed' told || { echo "$action"; cat told; exit 1; }
done
ckpt-compress -q -d folder/model.safetensors -o restored.safetensors
cmp restored.safetensors plain.safetensors
