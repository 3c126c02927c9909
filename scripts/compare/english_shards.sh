# Shards for the comparisons of loaders; sourced, not run.
# shellcheck shell=bash

# english_shards TOOLS DATA FOLDER: FOLDER/shards-2048 and FOLDER/shards-32768, named after their chunks' tokens: the English
# sample with Mistral's vocabulary.
english_shards() {
  local chunk
  zstd -dcq "$2/bench/english-32MB.jsonl.zst" |
    "$1/pretokenize" -q --format jsonl --tokenizer "$2/tokenizers/mistral-v1.model" > "$3/stream"
  for chunk in 2048 32768; do
    "$1/pack" -q --mode concat --chunk "$chunk" -o "$3/shards-$chunk/" < "$3/stream"
  done
}
