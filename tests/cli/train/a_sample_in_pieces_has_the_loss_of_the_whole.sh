# --tbptt computes a sample in pieces that carry the state: the loss is that of the whole. A run that is killed in the middle
# of a long document resumes bit for bit, and keeps its pieces; a model without a state has none.
seq 3000 > text
pretokenize -q --format file text | pack -q --chunk 1024 -o shards/
pack --info --json shards | grep -q '"docs":1,'  # of several samples
run=(-q --threads 1 --batch 1 --seq 200 --save-every 1 --keep 0)
train "${run[@]}" --model ten-nano --out whole --tbptt 64 --steps 24 --lr 1e-2 --warmup 0
train "${run[@]}" --model ten-nano --out killed --tbptt 64 --steps 24 --lr 1e-2 --warmup 0 & pid=$!
for _ in $(seq 3000); do [ -e killed/latest ] && break; sleep 0.01; done
kill -9 $pid
wait $pid || true
test ! -e killed/complete.json
train -q --resume --out killed --threads 1
cmp whole/latest/model.safetensors killed/latest/model.safetensors
grep -q '^tbptt: 64' killed/config.yaml

# Weights that have learned something, so that a token's loss depends on those before it.
for way in pieces at-once; do
  pieces=(--tbptt 64)
  [ "$way" = pieces ] || pieces=()
  train "${run[@]}" --init whole "${pieces[@]}" --lr 0 --out "$way" --steps 1
done
python3 - <<'PYTHON'
import json

def first_loss(run):
    records = map(json.loads, open(run + "/metrics.jsonl"))
    return next(record["loss_nats"] for record in records if record["type"] == "step")

pieces, whole = first_loss("pieces"), first_loss("at-once")
assert abs(pieces - whole) < 1e-4 * whole, (pieces, whole)
PYTHON
fails 2 "--tbptt" train --resume --out whole --tbptt 32
fails 2 'needs a model that carries a state' train -q --model llama-1m --tbptt 64 --steps 1 --out none
test ! -e none
