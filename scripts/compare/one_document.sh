# Shards for the comparisons with PyTorch; sourced, not run.
# shellcheck shell=bash

# one_document_shards PYTHON DATA FOLDER: FOLDER/shards, FOLDER/chunks.jsonl of the same, and FOLDER/text, of Mistral's
# vocabulary. One document, so that every sample is one span and plain causal attention is the same computation.
one_document_shards() {
  zstd -dcq "$2/bench/english-32MB.jsonl.zst" | "$1" -c '
import itertools, json, sys
documents = (json.loads(line)["text"].replace("\n", " ") for line in sys.stdin.readlines())
print(" ".join(itertools.islice(documents, 400))[:1_500_000])' > "$3/text"
  pretokenize --quiet --format lines --tokenizer "$2/tokenizers/mistral-v1.model" "$3/text" |
    pack --quiet --chunk 4096 --mode concat -o "$3/shards"
  pack --cat --json "$3/shards" > "$3/chunks.jsonl"
}
