# A checkpoint of a model that embeds holds what sentence-transformers reads, embed goes by it, and --merge makes it of an
# adapter.
for i in 1 2 3 4 5 6 7 8; do
  echo "{\"query\": [\"Find $i\", \"question $i\"], \"pos\": [\"answer $i\"], \"neg\": [\"other $i\"]}"
done > records.jsonl
pretokenize -q --records contrastive --template grit records.jsonl | pack -q --chunk 256 -o shards/
grit=(-q --objective grit --mode embedding --data shards --batch 2 --accum 2 --schedule constant --warmup 0 --threads 1)
train "${grit[@]}" --steps 2 --projection 16 --pooling weightedmean --out run > /dev/null
cd run/latest
for file in embedding.json modules.json 1_Pooling/config.json 2_Dense/config.json 2_Dense/model.safetensors \
  sentence_bert_config.json config_sentence_transformers.json modeling_trainwright_bidirectional.py trainwright_pooling.py; do
  test -s "$file" || { echo "$file is missing"; exit 1; }
  grep -q "\"$file\"" metadata.json || { echo "$file is not in metadata.json"; exit 1; }
done
python3 - <<'PYTHON'
import json
spec = json.load(open("embedding.json"))
assert (spec["pooling"], spec["attention"], spec["projection"], spec["dimension"]) == ("weightedmean", "bbcc", 16, 16), spec
assert spec["template"].startswith("begin {bos}\n"), spec
types = [module["type"].rsplit(".", 1)[1] for module in json.load(open("modules.json"))]
assert types == ["Transformer", "WeightedMeanBehindPrompt", "Dense", "Normalize"], types
prompts = json.load(open("config_sentence_transformers.json"))["prompts"]
assert prompts == {"query": "<s><|embed|>\n", "document": "<s><|embed|>\n"}, prompts
assert json.load(open("config.json"))["auto_map"]["AutoModel"].startswith("modeling_trainwright_bidirectional.")
assert json.load(open("tokenizer_config.json"))["pad_token"] == "<s>"
PYTHON
cd ../..
echo 'a text' | embed -q --checkpoint run --threads 1 | grep -q '"embedding"'

# The projection goes on where the run was stopped, and is the start of another run.
train "${grit[@]}" --steps 4 --projection 16 --pooling weightedmean --out whole > /dev/null
train -q --resume --out run --steps 4 > /dev/null
for file in model.safetensors 2_Dense/model.safetensors; do cmp "run/latest/$file" "whole/latest/$file"; done
train "${grit[@]}" --steps 1 --lr 0 --weight-decay 0 --projection 16 --init run --out next > /dev/null
cmp run/latest/2_Dense/model.safetensors next/latest/2_Dense/model.safetensors

# Causal attention needs no code; an adapter's projection and description are merged with it.
train "${grit[@]}" --steps 1 --attn cccc --out base > /dev/null
test ! -e base/latest/modeling_trainwright_bidirectional.py
train "${grit[@]}" --steps 1 --attn cccc --init base --lora 2 --projection 8 --out adapter > /dev/null
test -s adapter/latest/embedding.json
test ! -e adapter/latest/modules.json
train -q --merge adapter --out merged > /dev/null
test -s merged/modules.json
cmp merged/2_Dense/model.safetensors adapter/latest/2_Dense/model.safetensors
echo 'a text' > text.txt
embed -q --checkpoint merged text.txt -o merged.npy --threads 1
embed -q --checkpoint adapter text.txt -o adapter.npy --threads 1

# An adapter that was trained to predict leaves its base as it embeds.
printf '{"text": "one two three four"}\n' > lm.jsonl
pretokenize -q lm.jsonl | pack -q --chunk 256 -o text/
train -q --data text --seq 16 --batch 1 --steps 1 --threads 1 --init run --lora 2 --out predicts > /dev/null
train -q --merge predicts --out predicting > /dev/null
cmp predicting/2_Dense/model.safetensors run/latest/2_Dense/model.safetensors
cmp predicting/embedding.json run/latest/embedding.json
embed -q --checkpoint predicting text.txt -o predicting.npy --threads 1
embed -q --checkpoint predicts text.txt -o predicts.npy --threads 1
python3 - <<'PYTHON'
import struct
some, others = (struct.unpack("<16f", open(name, "rb").read()[128:]) for name in ("predicting.npy", "predicts.npy"))
assert max(abs(a - b) for a, b in zip(some, others)) < 1e-5, (some, others)
some, others = (struct.unpack("<8f", open(name, "rb").read()[128:]) for name in ("merged.npy", "adapter.npy"))
assert max(abs(a - b) for a, b in zip(some, others)) < 1e-5, (some, others)
PYTHON
