# A run on a set to which documents were appended otherwise than its first were made knows it: evaluate gives raw text no EOS where not all of
# the data has it.
seq 100 > numbers
printf 'abc\n\nde\n' > text
for second in eos no-eos; do
  pretokenize -q --eos numbers | pack -q --chunk 64 -o $second/
  pretokenize -q --$second numbers | pack -q --chunk 64 --append -o $second/
  train -q --steps 1 --batch 1 --seq 16 --threads 1 --model ten-nano --data $second --out run-$second > /dev/null
done
tokens() { evaluate -q --threads 1 --seq 16 --data text --checkpoint "$1" | python3 -c 'import json, sys; print(json.load(sys.stdin)["tokens"])'; }
test "$(tokens run-eos)" = 7
test "$(tokens run-no-eos)" = 5
