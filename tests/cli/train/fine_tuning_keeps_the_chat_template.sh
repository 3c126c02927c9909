# A checkpoint of fine-tuning holds the template in Jinja that its conversations were written by, as transformers reads it, or
# the one of the model that it began from; generate --chat writes by it. Through resume, adapters and merging.
python3 -c 'print("abcabd" * 400, end="")' > text.txt
pretokenize -q --format file text.txt | pack -q --chunk 256 -o shards/
options=(-q --batch 1 --seq 64 --threads 1)
train "${options[@]}" --model ten-nano --steps 1 --out began > /dev/null
cp -r "$(readlink -f began/latest)" model
test ! -e model/chat_template.jinja
cat > model/chat_template.jinja << 'JINJA'
{% for m in messages %}[{{ m.role }}] {{ m.content }}{% if m.role == 'assistant' %}{{ eos_token }}{% endif %}
{% endfor %}{% if add_generation_prompt %}[assistant] {% endif %}
JINJA
python3 - << 'PYTHON'
import hashlib, json, pathlib
metadata = json.loads(pathlib.Path("model/metadata.json").read_text())
assert "chat_template.jinja" not in metadata["files"]
with open("talks.jsonl", "w") as talks:
    for i in range(8):
        talks.write(json.dumps({"messages": [{"role": "user", "content": f"{i}?"}, {"role": "assistant", "content": f"{i}!" * 8}]}) + "\n")
PYTHON
same() { cmp "$1/latest/chat_template.jinja" "${2:-model/chat_template.jinja}"; }

train "${options[@]}" --data shards --init model --steps 1 --out texts > /dev/null
same texts
pretokenize -q --records sft --tokenizer model talks.jsonl | pack -q --chunk 64 -o talks/
sft=("${options[@]}" --data talks --objective sft)
train "${sft[@]}" --init model --steps 2 --save-every 1 --out tuned > /dev/null
same tuned
test -e tuned/checkpoints/step-00000001/chat_template.jinja
python3 -c '
import json
assert "chat_template.jinja" in json.load(open("tuned/latest/metadata.json"))["files"]'
train -q --resume --out tuned --data talks --steps 3 --replan-schedule > /dev/null
same tuned
train "${sft[@]}" --init model --lora 2 --steps 1 --out adapted > /dev/null
same adapted
train -q --merge adapted --out merged > /dev/null
cmp merged/chat_template.jinja model/chat_template.jinja

# The template of the data goes before that of the model, with the tokens that its folder names.
mkdir other
echo '{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ eos_token }}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}' > other/chat_template.jinja
echo '{"eos_token": "<\"end\">"}' > other/tokenizer_config.json
pretokenize -q --records sft --tokenizer model --template other talks.jsonl | pack -q --chunk 64 -o others/
train "${options[@]}" --data others --objective sft --init model --steps 1 --out by-other > /dev/null
(printf '{%% set eos_token = "<\\"end\\">" %%}\n'; cat other/chat_template.jinja) > expected
same by-other expected
said() { printf 'One?\nTwo?' | generate -q --threads 1 --chat --max-tokens 6 --format jsonl --checkpoint "$@"; }
said by-other > by-recorded
said by-other --template other > by-name
said by-other --template by-other/latest/chat_template.jinja > by-file
cmp by-recorded by-name
cmp by-recorded by-file
said tuned --template model > by-name
said tuned > by-recorded
cmp by-recorded by-name
said model --adapter adapted > by-recorded
said model --adapter adapted --template model > by-name
cmp by-recorded by-name

# Of a template of lines the checkpoint has the record of its data alone, which serves as well.
pretokenize -q --records sft --template alpaca --tokenizer model talks.jsonl | pack -q --chunk 256 -o lines/
train "${options[@]}" --data lines --objective sft --init model --steps 1 --out by-lines > /dev/null
test ! -e by-lines/latest/chat_template.jinja
said by-lines > by-recorded
said by-lines --template alpaca > by-name
cmp by-recorded by-name
