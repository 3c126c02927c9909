# What was chosen of a preset's shape is the run's for good. The scan is remembered, too, and another one on resume is a
# warning, for it computes the same but for rounding.
seq 2000 > text
pretokenize -q text | pack -q --chunk 512 -o shards/
go() { train --threads 1 --out run "$@" 2> log || { cat log; exit 1; }; }
go --model ten-nano --ten-init compat --ten-scan chunked --ten-chunk 16 --steps 1 --batch 1 --seq 32 --schedule constant
grep -q '"init": "compat"' run/latest/config.json
grep -q '"scan_chunk": 16' run/latest/config.json
grep -q '^ten-scan: "chunked"' run/config.yaml

fails 2 "--ten-init: lru differs from compat of the run's model" \
  train -q --threads 1 --out run --resume --steps 2 --ten-init lru
go --resume --steps 2
if grep -q 'scan .* instead of' log; then cat log; exit 1; fi
go --resume --steps 3 --ten-scan fused
grep -q "scan fused instead of the run's chunked: results differ by rounding" log || { cat log; exit 1; }
grep -q '^ten-scan: "fused"' run/config.yaml
grep -q '"init": "compat"' run/latest/config.json
