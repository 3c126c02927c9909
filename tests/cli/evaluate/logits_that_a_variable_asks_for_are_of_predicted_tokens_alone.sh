# The environment or a file may ask for logits for other data: of records that are embedded none are written, and an older file stays.
grit_sets
cat > tiny.json << 'END'
{"model_type": "llama", "vocab_size": 512, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1,
 "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 256, "rms_norm_eps": 1e-5,
 "rope_theta": 10000, "tie_word_embeddings": false, "hidden_act": "silu"}
END
train -q --objective grit --mode unified --model tiny.json --data pairs --data talks --query-max-len 64 --passage-max-len 96 \
  --batch 4 --accum 4 --steps 1 --schedule constant --warmup 0 --threads 1 --out run > /dev/null
printf 'old' > logits.safetensors
export TRAINWRIGHT_LOGITS=logits.safetensors
evaluate -q --checkpoint run --data pairs --threads 1 > pairs.json
grep -q ndcg_at_10 pairs.json
test "$(cat logits.safetensors)" = old
evaluate -q --checkpoint run --data talks --threads 1 > /dev/null
test "$(head -c 3 logits.safetensors | tr -d '\0')" != old
