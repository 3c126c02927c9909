# Each wrong use of --objective grit ends with its status and names what is wrong.
printf '{"query": "one", "pos": ["two"], "neg": []}\n{"query": "three", "pos": ["four"], "neg": []}\n' > pairs.jsonl
printf '{"text": ["one", "two"]}\n{"text": ["three", "four"]}\n' > talks.jsonl
pretokenize -q --records contrastive pairs.jsonl | pack -q --chunk 512 -o pairs/
pretokenize -q --records sft --template grit talks.jsonl | pack -q --chunk 512 -o talks/
refused() {  # STATUS TEXT ARGUMENT...
  fails "$1" "$2" train -q --objective grit --steps 1 --accum 1 --threads 1 --out run "${@:3}"
  test ! -e run/checkpoints || { echo "$*: trained"; exit 1; }
}
refused 3 'contrastive' --data talks --mode embedding
refused 3 'lm or sft' --data pairs --mode generative
refused 3 'lm or sft' --data pairs --mode unified
refused 2 'temperature' --data pairs --temperature 0
refused 2 'temperature' --data pairs --temperature -1
refused 2 'temperature' --data pairs --temperature nan
refused 2 'negative' --data pairs --batch 1 --group-size 1
refused 2 'gen-batch' --data pairs --data talks --mode unified --batch 4 --gen-batch 3
refused 2 'attn' --data pairs --data talks --mode unified --attn bb
refused 2 'exact-world' --data pairs --exact-world 1 --negatives rank
refused 2 'matryoshka' --data pairs --matryoshka 8,x
refused 2 'seq' --data pairs --seq 64
fails 2 'only with --objective grit' train -q --objective lm --mode embedding --data talks --steps 1 --out run
cat > tiny.json << 'END'
{"model_type": "llama", "vocab_size": 512, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1,
 "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 256, "rms_norm_eps": 1e-5,
 "rope_theta": 10000, "tie_word_embeddings": false, "hidden_act": "silu"}
END
fails 2 '--pooling cls takes the first token' train -q --objective grit --model tiny.json --data pairs --batch 2 --accum 1 \
  --steps 1 --threads 1 --pooling cls --attn cccc --out alone
fails 2 '64 elements of vectors that have 32' train -q --objective grit --model tiny.json --data pairs --eval-data pairs --steps 1 \
  --threads 1 --matryoshka 8,64 --out wide
test ! -e wide
fails 3 'nothing to learn from' train -q --objective grit --model tiny.json --data pairs --batch 1 --accum 1 --steps 1 \
  --threads 1 --out alone
