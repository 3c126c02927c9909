# Ids of another program are packed with or without their tokenizer, and leave as they came.
printf 'to be or not to be\nthat is the question\n' > text
pretokenize -q text | pack -q --chunk 64 --mode concat | pack -q --export nanogpt -o ids.bin
pack -q --from nanogpt --tokenizer bytes --eot none ids.bin -o known.tws
pack -q --export nanogpt known.tws -o again.bin
cmp ids.bin again.bin
pack -q --from nanogpt --vocab 256 --eot none ids.bin -o unknown.tws
pack -q --info --json unknown.tws | python3 -c 'import json, sys; assert json.load(sys.stdin)["tokenizer"] == "unknown"'
pack -q --cat unknown.tws 2> messages && exit 1 || test $? = 3
pack -q --from nanogpt --vocab 10 --eot none ids.bin -o none.tws 2> messages && exit 1 || test $? = 3
pack -q --from nanogpt ids.bin -o none.tws 2> messages && exit 1 || test $? = 2
head -c 5000 /dev/urandom > junk
for format in llmc npz pt; do
  pack -q --from $format --vocab 10 junk -o none.tws 2> messages && exit 1 || test $? = 3
done
test ! -e none.tws
