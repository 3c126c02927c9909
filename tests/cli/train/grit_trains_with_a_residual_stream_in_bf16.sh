# Both parts of the objective learn with a residual stream in bf16 as with one in fp32.
grit_sets
cat > tiny.json << 'END'
{"model_type": "llama", "vocab_size": 512, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
 "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 256, "rms_norm_eps": 1e-5,
 "rope_theta": 10000, "tie_word_embeddings": false, "hidden_act": "silu"}
END
for stream in fp32 bf16; do
  train -q --objective grit --mode unified --data pairs --data talks --model tiny.json --query-max-len 64 \
    --passage-max-len 96 --temperature 0.1 --batch 4 --accum 4 --steps 12 --lr 1e-2 --log-every 1 --threads 1 \
    --mixed-precision bf16 --residual-stream $stream --out $stream > /dev/null
done
python3 - <<'PYTHON'
import json
def terms(stream):
    records = [json.loads(line) for line in open(f"{stream}/metrics.jsonl")]
    return [record["loss_terms"] for record in records if record["type"] == "step"]
fp32, bf16 = terms("fp32"), terms("bf16")
assert len(bf16) == 12 and fp32 != bf16
for name in ("loss_emb_nats", "loss_gen_nats"):
    assert bf16[-1][name] < bf16[0][name], (name, bf16)
    for exact, step in zip(fp32, bf16):
        assert abs(step[name] - exact[name]) < 0.05 * exact[name] + 0.02, (name, exact, step)
PYTHON
