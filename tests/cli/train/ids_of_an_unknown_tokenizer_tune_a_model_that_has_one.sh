# Data that was packed without its tokenizer tunes and measures a model that has one: it is said that nothing compares the two,
# and a vocabulary that the model cannot have is refused with what can be done.
seq 400 > text
pretokenize -q text | pack -q --chunk 64 -o known/
pack -q --export nanogpt known/ -o ids.bin
pack -q --from nanogpt --vocab 258 --eot 257 --chunk 64 ids.bin -o unknown/
pack -q --from nanogpt --vocab 100000 --eot 257 --chunk 64 ids.bin -o larger/
run=(--steps 1 --batch 1 --seq 16 --threads 1)
train -q --model ten-nano "${run[@]}" --data known --out base
train --init base "${run[@]}" --data unknown --out tuned 2> err
grep -q 'warning: the data was packed without its tokenizer' err
evaluate --threads 1 --seq 16 --checkpoint base --data unknown > measured 2> err
grep -q 'warning: unknown: was packed without its tokenizer' err
python3 -c 'import json; assert json.load(open("measured"))["tokens"] > 0'
fails 3 'see --vocab and --tokenizer of pack' train -q --init base "${run[@]}" --data larger --out none
