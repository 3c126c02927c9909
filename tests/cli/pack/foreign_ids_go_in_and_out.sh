# Ids of another program are packed with or without their tokenizer, and leave as they came.
printf 'to be or not to be\nthat is the question\n' > text
pretokenize -q --no-eos text | pack -q --chunk 64 --mode concat | pack -q --export nanogpt -o ids.bin
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
# One flipped bit of the ids inside an archive is found by its CRC-32.
for name in dict.pt stored.npz; do
  cp "$TRAINWRIGHT_SOURCE_DIR/tests/packing/fixtures/foreign/$name" .
  pack -q --vocab 200000 "$name" -o good.tws
  python3 - "$name" <<'PYTHON'
import sys
import zipfile
data = bytearray(open(sys.argv[1], "rb").read())
entry = max(zipfile.ZipFile(sys.argv[1]).infolist(), key=lambda e: (e.filename.rpartition("/")[2] in ("0", "tokens.npy", "input_ids.npy", "ids.npy"), e.file_size))
end = entry.header_offset + 30 + sum(int.from_bytes(data[entry.header_offset + i:][:2], "little") for i in (26, 28)) + entry.compress_size
data[end - 2] ^= 1
open(sys.argv[1], "wb").write(data)
PYTHON
  pack -q --vocab 200000 "$name" -o none.tws 2> messages && exit 1 || test $? = 3
  grep -q 'CRC-32' messages
done
test ! -e none.tws
