# The event files of a run that is resumed with other intervals, or begun anew in the folder of one that died, have a point for
# each record of metrics.jsonl and no other: TensorBoard's data server forgets nothing by itself.
seq 400 | sed 's/$/ bottles of beer on the wall/' > text
pretokenize -q text | pack -q --chunk 256 -o shards/
begin() { # begin ARGUMENT...
  train -q --model neox-tiny --data shards --eval-data shards --seq 64 --batch 4 --threads 1 --out run "$@"
}
compare() {
  python3 "$TRAINWRIGHT_SOURCE_DIR/tests/train/check_tensorboard.py" run --plain > tags
}
begin --steps 8 --save-every 4 --log-every 1 --eval-every 2
compare
rm -r run/checkpoints/step-00000008 run/complete.json
train -q --resume --out run --log-every 4 --eval-every 4
compare
rm -r run/checkpoints/* run/latest
begin --steps 2 --log-every 2 --eval-every 0
compare
