# Without --tokenizer a token is a byte, which is seldom what somebody means; where it is meant nothing is said.
printf 'hello\n' > text.txt
pretokenize text.txt -o a.tokens 2> err
grep -q 'no --tokenizer is given: a token is a byte' err
pretokenize --tokenizer bytes text.txt -o b.tokens 2> err
if grep 'no --tokenizer' err; then exit 1; fi
TRAINWRIGHT_TOKENIZER=bytes pretokenize text.txt -o c.tokens 2> err
if grep 'no --tokenizer' err; then exit 1; fi
printf 'a\0b\n' > binary
fails 3 'zero byte' pretokenize binary -o d.tokens
pretokenize -q --format lines binary -o d.tokens
# A model's name is no file, and text is no shard: messages say what to do.
echo text > lines.txt
pretokenize -q --tokenizer gpt2 lines.txt -o none.tok 2> messages && exit 1 || test $? = 4
grep -q "hint: a model's name is no file, and nothing is downloaded: --tokenizer takes" messages
echo '{"text": "x"}' > own.jsonl
pack --info own.jsonl 2> messages && exit 1 || test $? = 3
grep -q 'hint: .*pretokenize FILE | pack' messages
