# A run whose --num-samples is named otherwise, and that is lost before its next checkpoint, goes on from its copies.
grit_sets
printf '{"pairs": 8}' > counts.json
cat > tiny.json << 'END'
{"model_type": "llama", "vocab_size": 512, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1,
 "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 256, "rms_norm_eps": 1e-5,
 "rope_theta": 10000, "tie_word_embeddings": false, "hidden_act": "silu"}
END
train -q --objective grit --model tiny.json --batch 2 --accum 1 --steps 2 --schedule constant --threads 1 --data pairs \
  --num-samples counts.json --out run --copy-to copies
mkdir moved
mv counts.json moved/
train -q --resume --out run --num-samples moved/counts.json --steps 4
rm -r run/checkpoints/* copies/step-00000004
train --resume --out run --num-samples moved/counts.json 2> err || { cat err; exit 1; }
grep -q 'brought back run/checkpoints/step-00000002' err || { cat err; exit 1; }
