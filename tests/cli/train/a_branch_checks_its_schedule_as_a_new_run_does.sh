# Options of the schedule that a new run refuses beside its --schedule are refused beside that of a branch's parent.
seq 300 | sed 's/$/ bottles of beer on the wall/' > text
pretokenize -q text | pack -q --chunk 256 -o shards/
parent() { # parent SCHEDULE
  train -q --model neox-tiny --data shards --seq 64 --batch 2 --steps 8 --save-every 4 --keep 0 --threads 1 --schedule "$1" --out "$1"
}
parent wsd
parent constant
fails 2 'decay-steps: 500 steps: must lie in \[1, 7\]' train -q --branch-from wsd@4 --decay-steps 500 --out b
fails 2 'min-lr-ratio: has no meaning with --schedule constant' train -q --branch-from constant@4 --min-lr-ratio 0.5 --out b
test ! -e b
# What a run of the same kind takes, a branch takes; its configuration begins it again.
train -q --branch-from wsd@4 --decay-steps 3 --out branch
grep -qx 'decay-steps: 3' branch/config.yaml
train -q --branch-from constant@4 --lr 0.01 --out still
train -q --config still/config.yaml --out again
cmp still/latest/model.safetensors again/latest/model.safetensors
