# train --dry-run tells the peak memory of a model of the family ten within a tenth, of samples of one long
# document, whole and in pieces.
seq 8000 > text
pretokenize -q --format file text | pack -q --chunk 8192 -o shards/
pack --info --json shards | grep -q '"docs":1,'
cat > ten.json << 'JSON'
{"model_type": "ten", "vocab_size": 258, "hidden_size": 64, "intermediate_size": 256, "num_hidden_layers": 6,
 "num_eigenstates": 32, "max_position_embeddings": 8192}
JSON
told() {  # NAME ARGUMENT...
  local name=$1
  shift
  set -- -q --model ten.json --seq 8192 --batch 1 --accum 1 --steps 2 --threads 1 "$@"
  train "$@" --dry-run --summary "$name-told.json" > /dev/null
  train "$@" --out "$name" --summary "$name-ran.json" > /dev/null
  python3 - "$name" <<'PYTHON'
import json, sys
name = sys.argv[1]
memory = json.load(open(name + "-told.json"))["memory_bytes"]
peak = json.load(open(name + "-ran.json"))["max_memory_bytes"]
assert abs(memory["total"] - peak) < 0.1 * peak, (name, memory, peak)
PYTHON
}
told whole
told pieces --checkpoint-activations full --tbptt 1024
python3 - <<'PYTHON'
import json
activations = {name: json.load(open(name + "-told.json"))["memory_bytes"]["activations"] for name in ("whole", "pieces")}
assert activations["pieces"] * 8 < activations["whole"], activations
PYTHON
