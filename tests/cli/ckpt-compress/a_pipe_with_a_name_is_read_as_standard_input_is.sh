# What a shell gives for <(COMMAND) is listed, tested, searched for parts and rewritten as standard input is.
original=$TRAINWRIGHT_SOURCE_DIR/examples/data/tiny-checkpoint/model.safetensors
ckpt-compress -q "$original" -o container
ckpt-compress -q --to stream "$original" -o stream
for file in container stream; do
  ckpt-compress -l - < "$file" | sed 1d > expected
  ckpt-compress -l <(cat "$file") | sed 1d | cmp - expected
  ckpt-compress -q -t --keep-going <(cat "$file")
  ckpt-compress -q -d --tensor model.norm.weight --to raw "$file" -o expected -f
  ckpt-compress -q -d --tensor model.norm.weight --to raw <(cat "$file") -o - | cmp - expected
  ckpt-compress -q -d --keep-going <(cat "$file") -o - | cmp - "$original"
  ckpt-compress -q --to stream <(cat "$file") -o - | cmp - stream
done
status=0
ckpt-compress -l <(cat "$original") 2> err || status=$?
test "$status" = 3
grep -q 'is not compressed: it is a plain safetensors file' err
