# The warning names the output, not the input.
ckpt-compress -q "$TRAINWRIGHT_SOURCE_DIR/examples/data/tiny-checkpoint/model.safetensors" -o whole
head -c -10 whole > cut
fails 3 'warning: standard output lacks 1 of 11 tensors' ckpt-compress -d --keep-going cut -o -
