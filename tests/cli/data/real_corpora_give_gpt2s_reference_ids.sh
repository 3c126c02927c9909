# The hashes are of the ids of the Python package tokenizers 0.23.3, one document a line, as a JSON list without spaces.
need_real_data
check() {
  pretokenize --quiet --tokenizer "$data/tokenizers/gpt2.tokenizer.json" --no-eos --to jsonl "$data/bench/$1" |
    sed 's/.*"ids":\(.*\)}$/\1/' | tr -d ' ' | sha256sum | cut -c 1-64
}
test "$(check english-32MB.jsonl.zst)" = 680cd9e2b8ad3c0314e92f47a61a287afe040e638c151533892e5cd68ee2e378
test "$(check code-16MB.jsonl.zst)" = 97c0f82178e5ad227cc355e153f69fff7ee1d68d1aeaca761eff6c41f01748c5
