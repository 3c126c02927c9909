# --fp8 without bf16, with 4-bit weights, of a family without such MLPs, of a run that computes no logits, of sizes that are
# no multiples of 16; and --dry-run counts what it takes.
printf '{"text": "one two three four"}\n{"text": "five six seven"}\n' > data.jsonl
pretokenize --tokenizer "$TRAINWRIGHT_SOURCE_DIR/examples/data/mistral-v1.model" data.jsonl | pack --chunk 16 -o shards/
refused() {
  fails 2 "$1" train --progress never --data shards --steps 1 --batch 1 --seq 16 --device cpu --out run "${@:2}"
  test ! -e run
}
refused "\-\-fp8: goes with bf16 alone, and this is fp32" --model llama-1m --fp8 mlp
refused "goes with bf16 alone, and this is fp16" --model llama-1m --mixed-precision fp16 --fp8 head
refused "\-\-fp8 mlp, --quant: cannot both be in force" --model llama-1m --mixed-precision bf16 --fp8 mlp --lora 2 --quant nf4
refused "a model of the family ten has no MLPs that can be in fp8" --model ten-nano --mixed-precision bf16 --fp8 mlp+head
refused "'attention' is not one of off, mlp, head, mlp+head" --model llama-1m --mixed-precision bf16 --fp8 attention
sed 's/"hidden_size": 32/"hidden_size": 40/' > odd.json << 'END_OF_MODEL'
{"model_type": "llama", "vocab_size": 32000, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1,
 "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 256, "rms_norm_eps": 1e-5,
 "rope_theta": 10000, "tie_word_embeddings": false, "hidden_act": "silu"}
END_OF_MODEL
refused "sizes are multiples of 16, and the hidden size is 40" --model odd.json --mixed-precision bf16 --fp8 head
printf '{"query": "what", "pos": ["this"], "neg": ["that"]}\n{"query": "who", "pos": ["she"], "neg": ["he"]}\n' > pairs.jsonl
pretokenize -q --records contrastive pairs.jsonl | pack -q --chunk 64 -o pairs/
fails 2 "no loss of this run reads the logits" train --progress never --data pairs --model llama-1m --steps 1 --batch 2 \
  --device cpu --mixed-precision bf16 --fp8 mlp+head --out run
train -q --data pairs --model llama-1m --steps 1 --batch 2 --device cpu --mixed-precision bf16 --fp8 mlp --out embeds
operands() { awk '/^operands of GEMMs/ { print $5 }'; }
train -q --dry-run --data shards --model llama-1m --mixed-precision bf16 --batch 1 --seq 16 --device cpu > plain
train -q --dry-run --data shards --model llama-1m --mixed-precision bf16 --batch 1 --seq 16 --device cpu --fp8 mlp > fp8
awk -v without="$(operands < plain)" -v with_fp8="$(operands < fp8)" 'BEGIN { exit !(with_fp8 > without) }'
