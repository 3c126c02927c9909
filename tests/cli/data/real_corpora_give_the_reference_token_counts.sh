# The counts are those of the Python package sentencepiece 0.2.3, which encoded each document of the same files.
need_real_data
count() {
  pretokenize --quiet --no-eos --tokenizer "$data/tokenizers/mistral-v1.model" --summary counts.json "$data/bench/$1" > tokens
  grep -o '"tokens": *[0-9]*' counts.json | tr -dc 0-9
}
test "$(count english-32MB.jsonl.zst)" = 10162182

# A pipe, a file and a folder give the same shards, on 32 MB of real text.
pack --quiet --chunk 32768 -o folder/ tokens
pack --quiet --chunk 32768 -o file.tws tokens
cat tokens | pack --quiet --chunk 32768 > pipe.tws
cat folder/shard-*.tws | cmp - file.tws
cmp file.tws pipe.tws

test "$(count code-16MB.jsonl.zst)" = 5248120
