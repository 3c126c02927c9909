# What --print-config writes of an option that needs another, which is its default, is read back without that one.
python3 -c 'print("abcabd" * 400, end="")' > text.txt
pretokenize -q --format file text.txt | pack -q --chunk 256 -o shards/
train --print-config --model ten-nano --steps 1 --threads 1 > printed.yaml
grep -q '^json: false$' printed.yaml
train -q --config printed.yaml --explain > /dev/null
