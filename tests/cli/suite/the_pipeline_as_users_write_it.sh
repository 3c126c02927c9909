# The commands of the README: a folder, a file and a pipe hold the same shards, and the bare training command reads them.
head -n 4000 "$TRAINWRIGHT_SOURCE_DIR/examples/data/tinyshakespeare.txt" > text
pretokenize text | pack --chunk 32768 -o shards/
pretokenize text | pack --chunk 32768 > shards.tws
cat shards/shard-*.tws | cmp - shards.tws
pack --verify shards/ shards.tws
if [[ " $BUILT_TOOLS " == *' train '* ]]; then
  train --mixed-precision bf16 --accum 8 --batch 1 --seq 64 --steps 2
  train --data shards.tws --mixed-precision bf16 --accum 8 --batch 1 --seq 64 --steps 2 --out runs/file
  # The run repeats from the configuration that it wrote.
  test -s runs/file/config.yaml
  train --config runs/file/config.yaml --print-config > effective.yaml
  grep -qx 'accum: 8' effective.yaml
fi
