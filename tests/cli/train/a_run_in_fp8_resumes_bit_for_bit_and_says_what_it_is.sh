# --fp8 on a CPU: told once that it only rounds, kept by the run, part of its plan, and resumed to the same bits.
printf '{"text": "one two three four"}\n{"text": "five six seven"}\n' > data.jsonl
pretokenize --tokenizer "$TRAINWRIGHT_SOURCE_DIR/examples/data/mistral-v1.model" data.jsonl | pack --chunk 16 -o shards/
options="--progress never --data shards --model llama-1m --steps 4 --batch 1 --seq 16 --device cpu --mixed-precision bf16"
sum() { sha256sum < "$1/checkpoints/step-00000004/model.safetensors"; }
train $options --out bf16
train $options --fp8 mlp+head --out whole 2> err
test "$(grep -c -e "--fp8 mlp+head on a CPU rounds as a GPU would" err)" = 1
grep -q "GEMMs of mlp+head in fp8" whole/metrics.jsonl
grep -q 'fp8: "mlp+head"' whole/config.yaml
grep -q '"fp8": *"mlp+head"' whole/run.json
test "$(sum bf16)" != "$(sum whole)"

train $options --fp8 mlp+head --max-minutes 0.0000001 --out parts
test -d parts/checkpoints/step-00000001
fails 2 "\-\-fp8: mlp differs from the run.s mlp+head" train --progress never --resume --out parts --fp8 mlp
train --progress never --resume --out parts
test "$(sum parts)" = "$(sum whole)"

expect_explained "mlp+head command" fp8 --data shards --model llama-1m --mixed-precision bf16 --fp8 mlp+head
expect_explained "mlp+head config" fp8 --data shards --model llama-1m --mixed-precision bf16 --config whole/config.yaml
