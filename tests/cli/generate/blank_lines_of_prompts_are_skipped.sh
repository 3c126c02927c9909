# As by all that read JSON lines: the samples are those of the same prompts without blank lines.
head -c 20000 "$TRAINWRIGHT_SOURCE_DIR/examples/data/tinyshakespeare.txt" > text.txt
pretokenize -q text.txt | pack -q --chunk 256 -o shards/
train -q --steps 1 --batch 1 --seq 64 --threads 1 --out run > /dev/null
said() { generate -q --checkpoint run --threads 1 --max-tokens 4 --temperature 1 --batch-invariant --input "$1"; }
printf '{"prompt": "to be"}\n{"prompt": "or"}\n' > dense
printf '\n{"prompt": "to be"}\n\n  \r\n{"prompt": "or"}\n\n' > loose
said dense > of_dense
said loose > of_loose
test "$(wc -l < of_dense)" = 2
cmp of_dense of_loose
