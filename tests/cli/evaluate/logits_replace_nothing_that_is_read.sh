# --logits goes where it was sent: into pipes, and through links; neither the data nor a file of the model is replaced.
python3 "$TRAINWRIGHT_SOURCE_DIR/tests/embedding/fixtures/cut/make_folder.py" model mean
printf 'amber basin cedar delta ember\n' > text.txt
cp text.txt kept.txt
find model -type f -exec md5sum {} + > kept.md5
logits() { evaluate -q --checkpoint model --data text.txt --threads 1 --logits "$1"; }
logits logits.safetensors > result

mkfifo pipe
timeout 60 cat pipe > from-pipe &
logits pipe > /dev/null
wait
test -p pipe
cmp from-pipe logits.safetensors
ln -s target.safetensors link
printf 'old' > target.safetensors
logits link > /dev/null
test -L link
cmp target.safetensors logits.safetensors

fails 2 'is an input' logits text.txt
fails 2 'is an input' logits ./text.txt
fails 2 'the result goes to standard output' logits -
fails 2 'the result goes to standard output' logits /dev/stdout
for name in config.json tokenizer.json model.safetensors; do fails 2 'is an input' logits "model/$name"; done
ln -s model/model.safetensors into
fails 2 'is an input' logits into
cmp text.txt kept.txt
md5sum --quiet -c kept.md5
