# Neither outputs nor --summary replace a file that the command reads, nor the summary one that it writes.
printf 'One line.\nAnother line.\n' > text.txt
echo text.txt > list
echo 'threads: 1' > settings.yaml
echo '{% for m in messages %}{{ m.content }}{% endfor %}' > chat.jinja
echo '{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}' > talk.jsonl
mkdir folder
cp "$TRAINWRIGHT_SOURCE_DIR/examples/data/mistral-v1.model" folder/tokenizer.model
pretokenize -q text.txt -o tokens.tok
pack -q tokens.tok -o shards/
kept() { md5sum text.txt list settings.yaml chat.jinja folder/* tokens.tok shards/* log; }
echo log > log
before=$(kept)

fails 2 'is an input' pretokenize text.txt -o text.txt
fails 2 'is an input' pretokenize --files-from list -o list
fails 2 'is an input' pretokenize --config settings.yaml text.txt -o settings.yaml
fails 2 'is an input' pretokenize --tokenizer folder/tokenizer.model text.txt -o folder/tokenizer.model
fails 2 'is an input' pretokenize --tokenizer folder text.txt -o folder/tokenizer.model
fails 2 'is an input' pretokenize --records sft --template chat.jinja talk.jsonl -o chat.jinja
fails 2 'is an input' pretokenize --holdout 0.5 --files-from list -o other.tok --holdout-output list
fails 2 'is an input' pack --config settings.yaml tokens.tok -o settings.yaml

for place in text.txt ./text.txt new.tok list settings.yaml folder/tokenizer.model new.holdout.tok; do
  fails 2 '--summary' pretokenize --config settings.yaml --holdout 0.5 --tokenizer folder/tokenizer.model \
    --files-from list -o new.tok --summary "$place"
done
for place in tokens.tok shards/MANIFEST.json "$(echo shards/*.tws)"; do
  fails 2 '--summary' pack tokens.tok -o shards/ --summary "$place"
done
fails 2 '--summary' pack tokens.tok -o fresh/ --summary fresh/MANIFEST.json
fails 2 'standard output goes to' bash -c 'pretokenize text.txt --summary log >> log'
fails 2 'standard output carries' pretokenize text.txt --summary /dev/fd/1
test "$(kept)" = "$before"
test ! -e new.tok && test ! -e new.holdout.tok && test ! -e fresh

# A folder of the output may hold the summary, once more, too.
pack -q tokens.tok -o shards/ --summary shards/summary.json
pack -q tokens.tok -o shards/ --summary shards/summary.json
