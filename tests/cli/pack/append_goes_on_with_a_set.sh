# A set and what is appended to it read as one; another chunk is refused by name and changes nothing.
seq -f 'to be or not to be, that is question %g' 500 > text
pretokenize -q text -o tokens
pack -q --chunk 512 --remap tokens -o set/
pack -q --cat set > once
pack -q --chunk 512 --append tokens -o set/
pack -q --verify set > verified
pack -q --cat set > twice
cat once once | cmp - twice
cp set/MANIFEST.json before.json
pack -q --chunk 256 --append tokens -o set/ 2> messages && exit 1 || test $? = 3
grep -q -e '--chunk 512' messages
cmp set/MANIFEST.json before.json
pack -q --append tokens -o nowhere/ 2> messages && exit 1 || test $? = 2
test ! -e nowhere
pack -q --append tokens -o file.tws 2> messages && exit 1 || test $? = 2
