# Exit status 0 with a warning when something was saved, 3 when nothing could be; the input stays as it is.
seq -f 'to be or not to be, that is question %g' 3000 > text
pretokenize -q text | pack -q --chunk 2048 -o whole.tws
head -c 3000 whole.tws > cut.tws
cp cut.tws before.tws
pack --repair cut.tws -o saved.tws --summary summary.json 2> messages
grep -q 'warning: cut.tws: saved' messages
cmp cut.tws before.tws
pack -q --verify saved.tws > verified
grep -q '^saved.tws: sound' verified
python3 -c 'import json; s = json.load(open("summary.json")); assert s["chunks"] > 0 and s["chunks_lost"] is None and s["damages"] > 0, s'
pack --repair whole.tws -o again.tws 2> messages
grep -q 'whole.tws is sound, nothing is lost' messages
head -c 5000 text > junk
pack -q --repair junk -o none.tws 2> messages && exit 1 || test $? = 3
grep -q 'nothing can be saved' messages
test ! -e none.tws
pack -q --repair cut.tws -o cut.tws 2> messages && exit 1 || test $? = 2
pack -q --repair - -o none.tws < cut.tws 2> messages && exit 1 || test $? = 2
