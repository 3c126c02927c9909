# Standard output takes one file; no folder of the name - is made in place of it.
mkdir ckpt
cp "$TRAINWRIGHT_SOURCE_DIR/examples/data/tiny-checkpoint/model.safetensors" ckpt/model.safetensors
ckpt-compress -q ckpt
for place in - /dev/stdout /dev/fd/1; do
  for arguments in ckpt '-d ckpt.twc' '--to stream ckpt.twc'; do
    for force in '' -f; do
      fails 2 'is a folder, and standard output takes one file' ckpt-compress $force $arguments -o $place
      test ! -s out
    done
  done
done
test "$(ls -A | tr '\n' ' ')" = 'ckpt ckpt.twc err out '
