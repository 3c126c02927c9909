# --init with a weight that is not finite is refused before a step, and what step 1 makes of finite ones is not laid to the
# learning rate.
seq 100 > numbers
pretokenize -q numbers | pack -q --chunk 64 -o shards/
options="-q --progress never --data shards --batch 1 --seq 16 --threads 1"
train $options --model llama-1m --steps 2 --out run
cp -rL run/latest model
rm model/metadata.json model/trainwright_state.safetensors
cp -r model plain
set_weights() { # VALUE COUNT
  cp plain/model.safetensors model/
  python3 - "$@" <<'PYTHON'
import json, struct, sys
with open("model/model.safetensors", "r+b") as file:
    (size,) = struct.unpack("<Q", file.read(8))
    begin, end = json.loads(file.read(size))["model.layers.0.mlp.up_proj.weight"]["data_offsets"]
    file.seek(8 + size + begin)
    file.write(struct.pack("<f", float(sys.argv[1])) * min(int(sys.argv[2]), (end - begin) // 4))
PYTHON
}
for value in nan inf -inf; do
  set_weights $value 1
  for how in "" "--lora 2" "--lora 2 --quant nf4" "--mixed-precision bf16"; do
    fails 6 "model: holds a weight that is not finite (tensor model.layers.0.mlp.up_proj.weight)" \
      train $options --init model $how --steps 1 --out bad
    test -z "$(grep 'learning rate' err)"
    rm -rf bad
  done
done
set_weights 3e38 1000000
fails 6 "(step 1)" train $options --init model --steps 1 --out bad
grep -q "no step was taken yet" err
test -z "$(grep -e --lr err)"
