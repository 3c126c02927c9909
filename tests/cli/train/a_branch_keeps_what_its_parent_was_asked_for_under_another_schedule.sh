# A branch with another --schedule has the warm-up and the last rate its parent was asked for, and tells of others.
seq 300 | sed 's/$/ bottles of beer on the wall/' > text
pretokenize -q text | pack -q --chunk 256 -o shards/
parent() { # parent NAME OPTION...
  train -q --model neox-tiny --data shards --seq 64 --batch 2 --steps 8 --save-every 4 --keep 0 --threads 1 --out "$@"
}
parent asked --warmup 3 --min-lr-ratio 0.25
parent usual --warmup-ratio 0.25

train -q --branch-from asked@4 --schedule wsd --out of-asked
grep -qx 'warmup: 3' of-asked/config.yaml
grep -qx 'min-lr-ratio: 0.25' of-asked/config.yaml
train --branch-from usual@4 --schedule wsd --steps 16 --out of-usual 2> told
grep -qx 'warmup-ratio: 0.25' of-usual/config.yaml
grep -q "last learning rate 0.0 of the peak: what wsd has by default; the parent's 0.1 is cosine's" told
train -q --branch-from usual@4 --schedule wsd --explain > explained
test "$(awk '$1 == "min-lr-ratio" { print $2, $3 }' explained)" = "0.0 auto"
