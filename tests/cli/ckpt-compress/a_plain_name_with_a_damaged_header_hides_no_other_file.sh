# -t and -l of a folder name a file that was compressed under its plain name and whose header is damaged, and look at the others.
original=$TRAINWRIGHT_SOURCE_DIR/examples/data/tiny-checkpoint/model.safetensors
mkdir folder
cp "$original" folder/model.safetensors
ckpt-compress -q "$original" -o folder/trainwright_state.safetensors
ckpt-compress -q folder
state=folder.twc/trainwright_state.safetensors
printf '\0\0\0\0' | dd of=$state bs=1 seek=20 conv=notrunc 2> err
fails 3 "error: $state: " ckpt-compress -t folder.twc
grep -q 'folder.twc/model.twc.safetensors: sound' out
fails 3 "error: $state: " ckpt-compress -l folder.twc
grep -q 'folder.twc/model.twc.safetensors: safetensors, level default' out
