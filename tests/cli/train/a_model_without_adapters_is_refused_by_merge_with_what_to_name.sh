# train --merge of a run that trained the whole model says what has adapters to merge.
python3 -c 'print("abcabd" * 400, end="")' > text.txt
pretokenize -q --format file text.txt | pack -q --chunk 256 -o shards/
train -q --batch 1 --seq 64 --threads 1 --model ten-nano --steps 1 --out whole > /dev/null
fails 3 'whole: is no adapter' train --merge whole --out merged
grep -q 'hint: name a run of --lora' err
test ! -e merged
