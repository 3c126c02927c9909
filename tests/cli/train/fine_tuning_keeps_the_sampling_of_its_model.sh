# generation_config.json of what is trained from a model says what the model's said, but for the ids of special tokens, which are
# the data's: in checkpoints, in the average that --ema keeps, and through resume.
python3 -c 'print("abcabd" * 400, end="")' > text.txt
pretokenize -q --format file text.txt | pack -q --chunk 256 -o shards/
options=(-q --data shards --batch 1 --seq 64 --threads 1)
train "${options[@]}" --model ten-nano --steps 1 --out began > /dev/null
cp -r "$(readlink -f began/latest)" chat
rm chat/metadata.json
cat > chat/generation_config.json << 'JSON'
{"do_sample": true, "temperature": 0.7, "eos_token_id": 65, "top_k": 20, "repetition_penalty": 1.1, "transformers_version": "4.37.0"}
JSON

train "${options[@]}" --init chat --ema 0.9 --steps 1 --out tuned > /dev/null
python3 - << 'PYTHON'
import json
before = json.load(open("chat/generation_config.json"))
for folder in ("tuned/latest", "tuned/latest/average"):
    after = json.load(open(folder + "/generation_config.json"))
    assert after == before | {"bos_token_id": 256, "eos_token_id": 257}, (folder, after)
PYTHON
cp tuned/latest/generation_config.json first.json
train -q --resume --out tuned --data shards --steps 2 --replan-schedule > /dev/null
cmp first.json tuned/latest/generation_config.json
cmp first.json tuned/latest/average/generation_config.json
