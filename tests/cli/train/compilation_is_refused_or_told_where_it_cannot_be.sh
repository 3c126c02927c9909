# --compile on a machine without a GPU: graph is told to have no effect, auto says nothing, and both train as off does;
# other names are refused.
printf '{"text": "one two three four"}\n{"text": "five six seven"}\n' > data.jsonl
pretokenize --tokenizer "$TRAINWRIGHT_SOURCE_DIR/examples/data/mistral-v1.model" data.jsonl | pack --chunk 16 -o shards/
for mode in off graph auto; do
  train --progress never --data shards --model llama-1m --steps 2 --batch 1 --seq 16 --device cpu --compile $mode --out $mode 2> $mode.err
  sha256sum < $mode/checkpoints/step-00000002/model.safetensors > $mode.sum
done
grep -q -e "warning: --compile graph has no effect on a CPU" graph.err
if grep -e "--compile" auto.err off.err; then exit 1; fi
cmp off.sum graph.sum
cmp off.sum auto.sum
if grep -q '"graphs"' graph/metrics.jsonl; then exit 1; fi
status=0
train --data shards --compile fast 2> err || status=$?
test "$status" = 2
grep -q -e "--compile" err
