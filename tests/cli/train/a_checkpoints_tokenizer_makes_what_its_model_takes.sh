# transformers gives a model all that its tokenizer makes, which without model_input_names are token_type_ids, too: GPT-2 adds
# an embedding for them, and other models refuse them.
takes() {  # FOLDER
  python3 -c '
import json, sys
names = json.load(open(sys.argv[1] + "/tokenizer_config.json"))["model_input_names"]
assert names == ["input_ids", "attention_mask"], names' "$1"
}
printf '{"text": "one two three four"}\n{"text": "five six seven"}\n' > data.jsonl
options=(-q --data shards --batch 1 --seq 16 --steps 1 --threads 1)
for tokenizer in bytes "$TRAINWRIGHT_SOURCE_DIR/tests/tok/testdata/tokenizer_json/gpt2.json"; do
  rm -rf shards run
  pretokenize -q --tokenizer "$tokenizer" data.jsonl | pack -q --chunk 64 -o shards/
  train "${options[@]}" --model ten-nano --out run > /dev/null
  takes run/latest
done
