# The type of the residual stream is remembered by a run, resumed bit for bit, changed with a warning, planned with its
# memory, and refused where GEMMs are not in bf16 or the model has no such stream.
seq 3000 > text
pretokenize -q text | pack -q --chunk 512 -o shards/
cat > tiny.json << 'END'
{"model_type": "llama", "vocab_size": 512, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
 "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 256, "rms_norm_eps": 1e-5,
 "rope_theta": 10000, "tie_word_embeddings": false, "hidden_act": "silu"}
END
expect_explained 'fp32 default' residual-stream --model tiny.json
explain_fails "--residual-stream: bf16 goes with --mixed-precision bf16 alone, and this run computes in fp32" \
  --model tiny.json --residual-stream bf16
explain_fails "computes in fp16" --model tiny.json --residual-stream bf16 --mixed-precision fp16
explain_fails "--residual-stream: bf16 has no meaning for a model of the family ten, whose states are fp32" \
  --model ten-nano --residual-stream bf16 --mixed-precision bf16
fails 2 residual-stream train -q --steps 1 --residual-stream fp16

go() {
  train --model tiny.json --mixed-precision bf16 --batch 2 --accum 2 --seq 64 --lr 1e-2 --schedule constant --warmup 0 \
    --threads 1 "$@" > /dev/null 2> log || { cat log; exit 1; }
}
go --steps 4 --residual-stream bf16 --out whole
grep -q "residual stream and its gradient stored in bf16" log || { cat log; exit 1; }
go --steps 2 --residual-stream bf16 --out parted
grep -q '^residual-stream: "bf16"' parted/config.yaml
go --resume --out parted --steps 4
if grep -q 'residual stream .* instead of' log; then cat log; exit 1; fi
cmp whole/latest/model.safetensors parted/latest/model.safetensors
cmp whole/latest/trainwright_state.safetensors parted/latest/trainwright_state.safetensors
go --resume --out parted --steps 5 --residual-stream fp32
grep -q "residual stream fp32 instead of the run's bf16: results differ by rounding" log || { cat log; exit 1; }

go --steps 4 --out plain
if cmp -s plain/latest/model.safetensors whole/latest/model.safetensors; then echo "it changed nothing"; exit 1; fi
go --steps 4 --residual-stream bf16 --checkpoint-activations full --offload all --out recomputed
cmp whole/latest/model.safetensors recomputed/latest/model.safetensors
for stream in fp32 bf16; do
  train -q --model tiny.json --mixed-precision bf16 --steps 1 --batch 4 --seq 256 --threads 1 --residual-stream $stream \
    --dry-run --summary $stream.json > /dev/null
done
python3 - <<'PYTHON'
import json
begin = {run: json.loads(open(f"{run}/metrics.jsonl").readline()) for run in ("whole", "plain")}
assert begin["whole"]["residual_stream"] == "bf16" and begin["plain"]["residual_stream"] == "fp32", begin
fp32, bf16 = (json.load(open(f"{stream}.json")) for stream in ("fp32", "bf16"))
saved = fp32["memory_bytes"]["activations"] - bf16["memory_bytes"]["activations"]
# Two layers' inputs and middles, the last norm's input and the gradient: 2 bytes less of an element, and 2 of the other
# gradient; where bf16 is emulated, 4 of that one alone.
each = 7 * 2 if begin["whole"]["dtypes"]["rounded_to"] is None else 4
assert saved == bf16["tokens"] * 32 * each, (saved, bf16["tokens"])
PYTHON
