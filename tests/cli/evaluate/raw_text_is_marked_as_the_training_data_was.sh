# pretokenize puts EOS behind documents of text where the tokenizer has one, says so in the provenance, and evaluate of raw text
# follows what a checkpoint's data records.
printf 'abc\n\nde\n' > text
ids() { pretokenize -q --to jsonl "$@" | python3 -c 'import json, sys; print([json.loads(line)["ids"] for line in sys.stdin])'; }
test "$(ids text)" = '[[97, 98, 99, 257], [100, 101, 257]]'
test "$(ids --eos text)" = "$(ids text)"
test "$(ids --no-eos text)" = '[[97, 98, 99], [100, 101]]'
test "$(ids --bos text)" = '[[256, 97, 98, 99, 257], [256, 100, 101, 257]]'
fails 2 'no-eos' pretokenize --eos --no-eos text
fails 2 'no-eos' pretokenize --records sft --no-eos text
# A tokenizer without EOS has no mark to put.
tokenizer=$TRAINWRIGHT_SOURCE_DIR/tests/tok/testdata/tokenizer_json/uncut.json
test "$(ids --tokenizer "$tokenizer" text)" = '[[64, 65, 66], [332]]'
fails 2 'no such id' pretokenize --tokenizer "$tokenizer" --eos text

model=(-q --model ten-nano --steps 1 --batch 1 --seq 16 --threads 1)
seq 100 > numbers
pretokenize -q numbers | pack -q --chunk 64 -o with/
pretokenize -q --no-eos numbers | pack -q --chunk 64 -o without/
pretokenize -q --bos --no-eos numbers | pack -q --chunk 64 -o begun/
for data in with without begun; do train "${model[@]}" --data $data --out of-$data > /dev/null; done
tokens() { evaluate -q --threads 1 --seq 16 --data text --checkpoint "$@" | python3 -c 'import json, sys; print(json.load(sys.stdin)["tokens"])'; }
test "$(tokens of-with)" = 7
test "$(tokens of-without)" = 5
test "$(tokens of-begun)" = 7
test "$(tokens of-with --no-eos)" = 5
test "$(tokens of-without --eos --bos)" = 9
test "$(tokens of-begun --no-bos)" = 5
fails 2 'no-bos' evaluate --data text --checkpoint of-with --bos --no-bos
# Shards have their marks already; what is set for several runs is not refused.
for flag in --bos --no-bos --eos --no-eos '--key text'; do
  fails 2 "${flag% *}: has a meaning for text, and with/* is shards" evaluate --data with/ --checkpoint of-with $flag
done
TRAINWRIGHT_BOS=true evaluate -q --threads 1 --seq 16 --data with --checkpoint of-with > out
# Of data that was written in several ways there is nothing to follow.
pretokenize -q numbers -o a.tokens
pretokenize -q --no-eos text -o b.tokens
pack -q --chunk 64 a.tokens b.tokens -o mixed/
train "${model[@]}" --data mixed --out of-mixed > /dev/null
test "$(tokens of-mixed)" = 5

# A bad document is told with what evaluate offers, which is less than pretokenize does.
printf '{"text": "a"}\n{"body": "b"}\n{"text": "\377"}\n' > bad.jsonl
fails 3 'line 2' evaluate -q --threads 1 --checkpoint of-with --data bad.jsonl
grep -q -e 'hint: --key names one of its keys' err
test -z "$(grep -e --on-error err)"
sed -i 2d bad.jsonl
fails 3 'line 2' evaluate -q --threads 1 --checkpoint of-with --data bad.jsonl
test -z "$(grep -e --on-error -e --invalid-utf8 err)"
