# Names of adapter_config.json that this build does not adapt, or that the base lacks, are told as the file's.
fixtures=$TRAINWRIGHT_SOURCE_DIR/tests/model/fixtures
cp -r "$fixtures/tied" tied
cp -r "$fixtures/saved_tied" whole_head
cp -r "$fixtures/saved_tied" adapted_head
chmod -R u+w .
python3 - << 'PYTHON'
import json, struct
def change(path, edit):
    config = json.load(open(path))
    edit(config)
    json.dump(config, open(path, "w"))
change("whole_head/adapter_config.json", lambda config: config.update(modules_to_save=["lm_head"]))
# A matrix of the head's name, in place of one that is targeted.
path = "adapted_head/adapter_model.safetensors"
data = open(path, "rb").read()
(size,) = struct.unpack("<Q", data[:8])
header = json.loads(data[8:8 + size])
target = next(name for name in header if name.endswith(".lora_A.weight"))
module = target.removesuffix(".lora_A.weight")
header = {name.replace(module, "base_model.model.lm_head"): entry for name, entry in header.items()}
text = json.dumps(header).encode()
open(path, "wb").write(struct.pack("<Q", len(text)) + text + data[8 + size:])
change("adapted_head/adapter_config.json", lambda config: config["target_modules"].append("lm_head"))
PYTHON
printf '{"text": "one two three four"}\n' | pretokenize -q --tokenizer "$TRAINWRIGHT_SOURCE_DIR/examples/data/mistral-v1.model" - |
  pack -q --chunk 16 -o shards/
refused() {  # FOLDER TEXT
  for command in "evaluate --checkpoint $1 --data shards" "evaluate --checkpoint tied --adapter $1 --data shards" \
    "train --merge $1 --init tied --out merged"; do
    fails 3 "$1/adapter_config.json: $2" $command --allow-other-base -q
    test -z "$(grep -e '--lora-' err)"
  done
}
refused whole_head "the model's head is its table of tokens, and no module of its own (field modules_to_save)"
refused adapted_head "no module of the model is called 'lm_head' (field target_modules)"
