# A model learns to find texts, to write them, or both at once: what its records say of steps and evaluations.
grit_sets
cat > tiny.json << 'END'
{"model_type": "llama", "vocab_size": 512, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1,
 "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 256, "rms_norm_eps": 1e-5,
 "rope_theta": 10000, "tie_word_embeddings": false, "hidden_act": "silu"}
END
set -- --objective grit --model tiny.json --query-max-len 64 --passage-max-len 96 --temperature 0.1 --batch 4 --accum 4 \
  --steps 12 --lr 1e-2 --log-every 1 --threads 1 --eval-every 12
train -q "$@" --mode embedding --data pairs --eval-data pairs --out embedding > /dev/null
train -q "$@" --mode generative --data talks --eval-data talks --out generative > /dev/null
train -q "$@" --mode unified --data pairs --data talks --eval-data pairs --eval-data talks --out unified > /dev/null
python3 - <<'PYTHON'
import json
for mode, terms in (("embedding", {"loss_emb_nats", "in_batch_top1"}), ("generative", {"loss_gen_nats"}),
                    ("unified", {"loss_emb_nats", "in_batch_top1", "loss_gen_nats"})):
    records = [json.loads(line) for line in open(f"{mode}/metrics.jsonl")]
    steps = [record for record in records if record["type"] == "step"]
    types = {"masters": "fp32", "weights": "fp32", "logits": "fp32", "softmax": "fp32", "rounded_to": None}
    assert records[0]["type"] == "run_begin" and records[0]["dtypes"] == types, records[0]
    assert len(steps) == 12 and set(steps[0]["loss_terms"]) == terms, (mode, steps[0])
    assert steps[-1]["loss_nats"] < steps[0]["loss_nats"], mode
    embeds, generates = mode != "generative", mode != "embedding"
    for step in steps:
        assert step["tokens_if_padded"] >= step["tokens"], (mode, step)
        assert 0 <= step["data_wait_s"] <= step["step_time_s"] and step["cpu_cores"] > 0, (mode, step)
        texts = [16 if embeds else 0, 32 if embeds else 0, 16 if generates else 0]
        assert [step[name] for name in ("queries", "passages", "generative_rows")] == texts, (mode, step)
        assert sum(step.get("source_tokens", [step["tokens"]])) == step["tokens"], (mode, step)
        losses = sum(value for name, value in step["loss_terms"].items() if name.startswith("loss"))
        assert abs(losses - step["loss_nats"]) < 1e-9, (mode, step)
    evaluation = [record for record in records if record["type"] == "eval"][-1]
    if mode != "generative":
        assert evaluation["queries"] == 48 and 0 < evaluation["ndcg_at_10"] <= 1, evaluation
    if mode != "embedding":
        assert evaluation["perplexity"] > 1, evaluation
PYTHON
python3 "$TRAINWRIGHT_SOURCE_DIR/tests/train/check_metrics.py" "$TRAINWRIGHT_SOURCE_DIR/lib/run/metrics.schema.json" \
  unified/metrics.jsonl > /dev/null
test -e embedding/checkpoints/step-12/embedding.json || test -e embedding/latest/embedding.json
test ! -e generative/latest/embedding.json
