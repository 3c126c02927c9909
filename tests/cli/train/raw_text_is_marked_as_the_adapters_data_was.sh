# evaluate of raw text marks its documents as the data of the adapter was, not as that of the base; an adapter that does not say takes
# after its base.
seq 100 > numbers
printf 'abc\n\nde\n' > text
pretokenize -q numbers | pack -q --chunk 64 -o with/
pretokenize -q --no-eos numbers | pack -q --chunk 64 -o without/
options=(-q --steps 1 --batch 1 --seq 16 --threads 1)
train "${options[@]}" --model ten-nano --data with --out base > /dev/null
train "${options[@]}" --init base --lora 2 --data without --out adapted > /dev/null
tokens() { evaluate -q --threads 1 --seq 16 --data text --checkpoint "$@" | python3 -c 'import json, sys; print(json.load(sys.stdin)["tokens"])'; }
test "$(tokens base)" = 7
test "$(tokens adapted)" = 5
test "$(tokens base --adapter adapted)" = 5
test "$(tokens base --adapter adapted --eos)" = 7
cp -r "$(readlink -f adapted/latest)" foreign
rm foreign/metadata.json
test "$(tokens base --adapter foreign)" = 7
