# A file, a pipe and a folder, in both forms and at every level, on any number of threads.
original=$TRAINWRIGHT_SOURCE_DIR/examples/data/tiny-checkpoint
for level in '' --fast --max; do
  for form in safetensors stream; do
    ckpt-compress -q $level --to $form --threads 1 "$original/model.safetensors" -o one
    ckpt-compress -q $level --to $form --threads 3 - -o - < "$original/model.safetensors" | cmp - one
    ckpt-compress -t one > /dev/null
    ckpt-compress -q -d one -o - | cmp - "$original/model.safetensors"
    ckpt-compress -q -d --threads 3 < one | cmp - "$original/model.safetensors"
    rm one
  done
done
# Forms are rewritten into each other, from a file or a pipe.
ckpt-compress -q "$original/model.safetensors" -o file
ckpt-compress -q < "$original/model.safetensors" > stream
ckpt-compress -q --to stream file -o - | cmp - stream
ckpt-compress -q --to safetensors < stream | cmp - file
# A folder with a subfolder, a file that is compressed already, and names that need care.
cp -r "$original" folder
mkdir folder/sub
cp file 'folder/sub/nested one.safetensors'
echo notes > folder/.hidden
ln -s model.safetensors folder/link.safetensors
ckpt-compress -q folder
test "$(ls -A folder.twc | tr '\n' ' ')" = '.hidden config.json link.twc.safetensors model.twc.safetensors sub '
cmp file 'folder.twc/sub/nested one.safetensors'
ckpt-compress -q -t folder.twc > /dev/null
mv folder kept
ckpt-compress -q -d folder.twc
diff -r folder kept
