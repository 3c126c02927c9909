# --fast and --max say how to compress: beside what reads a compressed file they are refused, and what a variable or a file
# of --config says of them gives way.
original=$TRAINWRIGHT_SOURCE_DIR/examples/data/tiny-checkpoint/model.safetensors
ckpt-compress -q "$original" -o small
for action in -d -t -l; do
  for level in --fast --max; do
    fails 2 "$level excludes --" ckpt-compress $action $level small
  done
done
echo 'max: true' > max.yaml
ckpt-compress -q -d --config max.yaml small -o restored
cmp restored "$original"
TRAINWRIGHT_FAST=true ckpt-compress -q -t small > /dev/null
