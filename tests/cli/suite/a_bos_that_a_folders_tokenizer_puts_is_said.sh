# pretokenize puts no BOS where --bos does not ask for it: of a folder whose tokenizer does so by itself in transformers it says so.
mkdir folder
cp "$TRAINWRIGHT_SOURCE_DIR/examples/data/mistral-v1.model" folder/tokenizer.model
printf 'hello\n' > text.txt
told='no --bos is given: documents do not begin with <s>, .* folder$'
says() {
  pretokenize "$@" text.txt -o out.tokens 2> err
  grep -q "$told" err || { cat err; exit 1; }
}
says_nothing() {
  pretokenize "$@" -o out.tokens 2> err
  if grep -e '--bos' err; then exit 1; fi
}
echo '{"bos_token": "<s>", "add_bos_token": true}' > folder/tokenizer_config.json
says --tokenizer folder
test "$(grep -c "$told" err)" = 1
says_nothing --tokenizer folder --bos text.txt
says_nothing --tokenizer folder -q text.txt
echo '{"prompt": "a", "response": "b"}' > talk.jsonl
says_nothing --tokenizer folder --records sft --template plain talk.jsonl
echo '{"bos_token": "<s>", "add_bos_token": false}' > folder/tokenizer_config.json
says_nothing --tokenizer folder text.txt
# A tokenizer.json beside it says so by its post-processor.
cp "$TRAINWRIGHT_SOURCE_DIR/tests/tok/testdata/text_tokenizers/llama2.json" folder/tokenizer.json
rm folder/tokenizer.model folder/tokenizer_config.json
says --tokenizer folder
