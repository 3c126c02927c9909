# --explain tells what nobody chose, AdamW's epsilon among it, and run.json and config.yaml keep it.
printf 'to be or not to be\n' > text
pretokenize -q text | pack -q --chunk 16 -o shards/
expect_explained '1e-08 default' adam-eps --data shards
expect_explained '0.9 default' beta1 --data shards
expect_explained '1.0 default' clip --data shards
train -q --data shards --model ten-nano --steps 1 --batch 1 --seq 16 --threads 1 --out run > /dev/null
grep -q '^adam-eps: 1e-08' run/config.yaml
grep -q '"epsilon": *1e-08' run/run.json
