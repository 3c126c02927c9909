# With -f, too, and whichever of the two is read first.
original=$TRAINWRIGHT_SOURCE_DIR/examples/data/tiny-checkpoint/model.safetensors
mkdir ckpt
cp "$original" ckpt/model.safetensors
cp "$original" m.safetensors
ckpt-compress -q --fast ckpt
ckpt-compress -q --fast m.safetensors
kept() { md5sum ckpt/* ckpt.twc/* m.safetensors m.twc.safetensors; }
kept > kept
fails 2 'm.twc.safetensors: is an input, which the output would replace' ckpt-compress -f m.safetensors m.twc.safetensors
fails 2 'm.safetensors: is an input, which the output would replace' ckpt-compress -d -f m.twc.safetensors m.safetensors
fails 2 'ckpt.twc: holds ckpt.twc, which is read' ckpt-compress -f ckpt ckpt.twc
fails 2 'ckpt.twc: holds ckpt.twc/model.twc.safetensors, which is read' ckpt-compress -f ckpt ckpt.twc/model.twc.safetensors
fails 2 'ckpt: holds ckpt, which is read' ckpt-compress -d -f ckpt.twc ckpt
kept | cmp - kept
# Another folder's and another file's outputs are.
ckpt-compress -q -f m.safetensors ckpt
ckpt-compress -l m.twc.safetensors | grep -q 'level default'
