# Several safetensors files after each other are none.
original=$TRAINWRIGHT_SOURCE_DIR/examples/data/tiny-checkpoint/model.safetensors
ckpt-compress -q "$original" -o a
cp a b
for part in '--tensor model.norm.weight' '--slice model.norm.weight[0:2]'; do
  fails 2 'make one safetensors file, and there are 2 inputs' ckpt-compress -d $part a b
  test ! -s out
  ckpt-compress -q -d $part --to raw a > one
  ckpt-compress -q -d $part --to raw a b > both
  cat one one | cmp - both
done
