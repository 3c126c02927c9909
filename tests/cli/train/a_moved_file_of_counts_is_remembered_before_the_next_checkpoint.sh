# A run whose --num-samples is named otherwise, and that is stopped before its next checkpoint, needs no name for it again.
grit_sets
printf '{"pairs": 8}' > counts.json
cat > tiny.json << 'END'
{"model_type": "llama", "vocab_size": 512, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1,
 "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 256, "rms_norm_eps": 1e-5,
 "rope_theta": 10000, "tie_word_embeddings": false, "hidden_act": "silu"}
END
train -q --objective grit --model tiny.json --batch 2 --accum 1 --steps 2 --schedule constant --threads 1 --data pairs \
  --num-samples counts.json --out run
mkdir moved
mv counts.json moved/
train -q --resume --out run --num-samples moved/counts.json --steps 4
rm -r run/checkpoints/step-00000004 run/complete.json run/latest
ln -s checkpoints/step-00000002 run/latest
train -q --resume --out run
test -d run/checkpoints/step-00000004
