# Conversations that several templates wrote leave their checkpoint without one, also without that of the model that it began from: as two
# sets, as one of two streams, and as one to which the second was appended. generate --chat asks which one is meant.
python3 -c 'print("abcabd" * 400, end="")' > text.txt
pretokenize -q --format file text.txt | pack -q --chunk 256 -o shards/
options=(-q --batch 1 --seq 64 --threads 1)
train "${options[@]}" --model ten-nano --steps 1 --out began > /dev/null
cp -r "$(readlink -f began/latest)" model
cat > model/chat_template.jinja << 'JINJA'
{% for m in messages %}[{{ m.role }}] {{ m.content }}{% if m.role == 'assistant' %}{{ eos_token }}{% endif %}
{% endfor %}{% if add_generation_prompt %}[assistant] {% endif %}
JINJA
python3 - << 'PYTHON'
import json
with open("talks.jsonl", "w") as talks:
    for i in range(8):
        talks.write(json.dumps({"messages": [{"role": "user", "content": f"{i}?"}, {"role": "assistant", "content": f"{i}!" * 8}]}) + "\n")
PYTHON
pretokenize -q --records sft --tokenizer model talks.jsonl > own.tok
pretokenize -q --records sft --tokenizer model --template alpaca talks.jsonl > other.tok
pack -q --chunk 256 -o own/ own.tok
pack -q --chunk 256 -o other/ other.tok
pack -q --chunk 256 -o both/ own.tok other.tok
pack -q --chunk 256 -o appended/ own.tok
pack -q --chunk 256 --append -o appended/ other.tok

none() { test ! -e "$1/latest/chat_template.jinja" || { echo "$1 has a template"; exit 1; }; }
sft=("${options[@]}" --objective sft --init model)
train "${sft[@]}" --data own --data other --steps 2 --save-every 1 --ema 0.5 --out of-sets > /dev/null
none of-sets
test ! -e of-sets/latest/average/chat_template.jinja
train -q --resume --out of-sets --data own --data other --steps 3 --replan-schedule > /dev/null
none of-sets
train "${sft[@]}" --data own --data other --lora 2 --steps 1 --out adapted > /dev/null
none adapted
for set in both appended; do
  train "${sft[@]}" --data $set --steps 1 --out of-$set > /dev/null
  none of-$set
done
python3 - << 'PYTHON'
import json

def templates(node):
    parts = node if isinstance(node, list) else list(node.values()) if isinstance(node, dict) else []
    found = {node["template"]} if isinstance(node, dict) and "template" in node else set()
    return found.union(*map(templates, parts))

for run in ("of-sets", "of-both", "of-appended"):
    found = templates(json.load(open(f"{run}/latest/metadata.json"))["provenance"]["data_provenance"])
    assert len(found) == 2, (run, found)
PYTHON

said() { printf 'One?\n' | generate -q --threads 1 --chat --max-tokens 4 --format jsonl --checkpoint "$@"; }
fails 2 "how a conversation is written" said of-sets
fails 2 "how a conversation is written" said model --adapter adapted
said of-appended --template alpaca > by-name
test -s by-name

# Nor has a model that the adapter is merged into, though its base has one.
train -q --merge adapted --out merged > /dev/null
test ! -e merged/chat_template.jinja
fails 2 "how a conversation is written" said merged
