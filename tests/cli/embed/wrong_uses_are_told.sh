# Each wrong use ends with its status and names what is wrong.
head -c 20000 "$TRAINWRIGHT_SOURCE_DIR/examples/data/tinyshakespeare.txt" > text.txt
pretokenize -q text.txt | pack -q --chunk 256 -o shards/
train -q --steps 1 --batch 1 --seq 64 --threads 1 --out run > /dev/null
model=run
printf 'to be\n' > lines.txt
refused() {  # STATUS TEXT ARGUMENT...
  fails "$1" "$2" embed -q --checkpoint "$model" "${@:3}"
}
refused 2 'does not say what format' lines.txt -o vectors
refused 2 'is an input' lines.txt -o lines.txt --format raw
refused 2 '--truncate-dim' lines.txt --truncate-dim 100000
refused 2 '--resume' lines.txt --resume
refused 2 '--first-place' --mine-negatives lines.txt --first-place 9 --last-place 3
refused 2 'standard input' --nproc 2
refused 3 'holds no text' /dev/null -o out.npy
refused 3 'line 1' --mine-negatives lines.txt
refused 3 'has no place' lines.txt --template chatml --instruction 'Find it'
refused 4 'missing' missing.txt
printf '{"text": "to be"}\n' | embed --checkpoint "$model" > out 2> err
grep -q -e '--input-format' err || { cat err; exit 1; }
printf '{"id": "a", "text": "to be"}\n' | embed --checkpoint "$model" --input-format jsonl --format raw > out 2> err
grep -q 'ids of the texts are not written' err || { cat err; exit 1; }
printf '{"id": "a", "text": "to"}\n{"id": "b", "text": "be"}\n{"id": "a", "text": "or"}\n' |
  embed --checkpoint "$model" --input-format jsonl --format jsonl > out 2> err
grep -q 'the id of a text before stands for 1 text, too' err || { cat err; exit 1; }
