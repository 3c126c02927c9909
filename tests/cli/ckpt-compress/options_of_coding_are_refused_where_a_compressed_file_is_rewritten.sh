# --to takes the coded tensors of a compressed file as they are: what says how to code would have no effect.
mkdir ckpt
cp "$TRAINWRIGHT_SOURCE_DIR/examples/data/tiny-checkpoint/model.safetensors" ckpt/model.safetensors
cp ckpt/model.safetensors base.safetensors
ckpt-compress -q ckpt
small=ckpt.twc/model.twc.safetensors
for option in --fast --max '--base base.safetensors' '--base ckpt'; do
  for input in $small ckpt.twc; do
    fails 2 "${option% *}: has no effect on .*, which is compressed already" \
      ckpt-compress $option --to stream $input -o rewritten
  done
done
fails 2 '--max: has no effect on standard input' bash -c "ckpt-compress --max --to stream - -o rewritten < $small"
test ! -e rewritten
mkdir empty
for input in $small ckpt.twc; do
  fails 2 'empty: holds no base for' ckpt-compress --base empty --to stream $input -o rewritten
done
test ! -e rewritten
ckpt-compress -q --no-verify --to stream $small -o rewritten
ckpt-compress -q -d rewritten -o - | cmp - ckpt/model.safetensors
