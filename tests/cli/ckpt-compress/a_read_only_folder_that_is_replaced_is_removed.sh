# What -f replaces goes, also where nobody may write to it.
original=$TRAINWRIGHT_SOURCE_DIR/examples/data/tiny-checkpoint/model.safetensors
mkdir -p ckpt/inner
cp "$original" ckpt/model.safetensors
cp "$original" ckpt/inner/model.safetensors
ckpt-compress -q ckpt
chmod 444 ckpt.twc/*.safetensors ckpt.twc/inner/*
chmod 555 ckpt.twc/inner ckpt.twc
ckpt-compress -f ckpt 2> err
test "$(grep -c warning err)" = 0 || { cat err; exit 1; }
test "$(ls -A | tr '\n' ' ')" = 'ckpt ckpt.twc err '
ckpt-compress -q -t ckpt.twc
