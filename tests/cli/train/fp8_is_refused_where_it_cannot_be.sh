# --fp8 without bf16, with 4-bit weights, of a family without such MLPs, of sizes that are no multiples of 16.
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
refused "\-\-fp8" --model llama-1m --mixed-precision bf16 --fp8 attention
train -q --dry-run --data shards --model llama-1m --mixed-precision bf16 --batch 1 --seq 16 --device cpu --max-minutes 1 > plain
train -q --dry-run --data shards --model llama-1m --mixed-precision bf16 --batch 1 --seq 16 --device cpu --fp8 mlp > fp8
if cmp plain fp8; then exit 1; fi
