# Neither what -d takes out of a file nor the summary replaces an input, a base or the result, with -f and by any name.
mkdir before
cp "$TRAINWRIGHT_SOURCE_DIR/examples/data/tiny-checkpoint/model.safetensors" before/model.safetensors
cp before/model.safetensors after.safetensors
cp before/model.safetensors base
ckpt-compress -q after.safetensors -o small
ckpt-compress -q --base base after.safetensors -o difference
kept() { md5sum before/* after.safetensors base small difference; }
kept > kept

for part in '--tensor model.norm.weight' '--slice model.norm.weight[0:2]'; do
  fails 2 'is an input' ckpt-compress -d -f $part small -o small
  fails 2 'is an input' ckpt-compress -d -f $part small -o ./small
  fails 2 'is an input' ckpt-compress -d -f $part --base base difference -o base
done
mkdir differences
cp difference differences/model.twc.safetensors
fails 2 'is an input' ckpt-compress -d -f --tensor model.norm.weight --base before \
  differences/model.twc.safetensors -o before/model.safetensors

fails 2 '--summary' ckpt-compress after.safetensors -o result --summary result
fails 2 '--summary' ckpt-compress --base base after.safetensors -o result --summary base
test ! -e result
kept | cmp - kept
