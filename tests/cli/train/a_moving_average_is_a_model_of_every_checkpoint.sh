# --ema saves the average of the weights as a model that tools open, changes no bit of the run, and resumes.
printf '{"text": "one two three four"}\n{"text": "five six seven"}\n' > data.jsonl
pretokenize -q --tokenizer "$TRAINWRIGHT_SOURCE_DIR/examples/data/mistral-v1.model" data.jsonl | pack -q --chunk 16 -o shards/
for precision in no bf16; do
  options="-q --progress never --data shards --model llama-1m --steps 4 --save-every 2 --batch 1 --seq 16 --threads 1
           --mixed-precision $precision"
  train $options --out plain-$precision
  train $options --ema 0.6 --out whole-$precision
  for step in 2 4; do
    checkpoint=checkpoints/step-0000000$step
    cmp {plain,whole}-$precision/$checkpoint/model.safetensors
    if cmp -s whole-$precision/$checkpoint/{average/,}model.safetensors; then exit 1; fi
  done
  test ! -e plain-$precision/checkpoints/step-00000004/average

  train $options --ema 0.6 --max-minutes 0.0000001 --out parts-$precision
  train -q --progress never --resume --out parts-$precision
  cmp {parts,whole}-$precision/checkpoints/step-00000004/average/model.safetensors
done

# After two updates the average is w1 + max(1 - 0.6, 10 / 11) (w2 - w1).
train -q --progress never --data shards --model llama-1m --steps 4 --save-every 1 --keep 0 --batch 1 --seq 16 --threads 1 \
  --mixed-precision no --ema 0.6 --out each
python3 - <<'PYTHON'
import json, struct
def embeddings(path):
    data = open(path + "/model.safetensors", "rb").read()
    (size,) = struct.unpack("<Q", data[:8])
    begin, end = json.loads(data[8:8 + size])["model.embed_tokens.weight"]["data_offsets"]
    return struct.unpack(f"<{(end - begin) // 4}f", data[8 + size + begin:8 + size + end])
w1, w2 = (embeddings(f"each/checkpoints/step-0000000{step}") for step in (1, 2))
average = embeddings("each/checkpoints/step-00000002/average")
assert max(abs(a - (x + 10 / 11 * (y - x))) for a, x, y in zip(average, w1, w2)) < 1e-7
assert embeddings("each/checkpoints/step-00000001/average") == w1
PYTHON

average=whole-no/checkpoints/step-00000004/average
evaluate -q --checkpoint $average --data shards --threads 1 > own.json
generate -q --checkpoint $average --max-tokens 2 --temperature 0 --prompt one > text
ckpt-compress -q $average -o small
fails 2 "\-\-ema" train -q --progress never --resume --out parts-no --ema 0.7
fails 2 "\-\-ema" train -q --data shards --model llama-1m --ema 1 --out bad

# An adapter has one, too; ranks that divide the states gather it.
train -q --progress never --data shards --init plain-no --lora 2 --steps 2 --batch 1 --seq 16 --threads 1 --ema 0.5 --out lora
test -s lora/checkpoints/step-00000002/average/adapter_model.safetensors
for zero in 1 2; do
  for precision in no bf16; do
    train -q --progress never --data shards --model llama-1m --steps 2 --batch 1 --accum 2 --seq 8 --threads 1 --ema 0.5 \
      --mixed-precision $precision --nproc 2 --zero $zero --exact-world 2 --out ranks-$zero-$precision
  done
done
for precision in no bf16; do
  cmp ranks-{1,2}-$precision/checkpoints/step-00000002/average/model.safetensors
  train -q --progress never --data shards --model llama-1m --steps 2 --batch 1 --accum 4 --seq 8 --threads 1 --ema 0.5 \
    --mixed-precision $precision --exact-world 2 --out alone-$precision
  cmp {alone,ranks-1}-$precision/checkpoints/step-00000002/average/model.safetensors
done
