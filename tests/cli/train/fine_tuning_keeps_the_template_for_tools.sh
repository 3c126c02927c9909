# A model's template for conversations with tools writes those, and checkpoints, adapters, merged and averaged models keep it.
python3 -c 'print("abcabd" * 400, end="")' > text.txt
pretokenize -q --format file text.txt | pack -q --chunk 256 -o shards/
options=(-q --batch 1 --seq 64 --threads 1)
train "${options[@]}" --model ten-nano --steps 1 --out began > /dev/null
cp -r "$(readlink -f began/latest)" model
mkdir model/additional_chat_templates
turns='{% for m in messages %}[{{ m.role }}] {{ m.content }}{{ eos_token }}{% endfor %}{% if add_generation_prompt %}[assistant] {% endif %}'
echo "$turns" > model/chat_template.jinja
echo "{% for tool in tools %}{{ tool.name }}; {% endfor %}$turns" > model/additional_chat_templates/tool_use.jinja
cat > talks.jsonl << 'JSON'
{"prompt": [{"role": "user", "content": "q"}], "completion": [{"role": "assistant", "content": "a"}], "tools": [{"name": "look"}]}
{"prompt": [{"role": "user", "content": "q"}], "completion": [{"role": "assistant", "content": "a"}]}
JSON
pretokenize -q --records sft --tokenizer model talks.jsonl > talks.tok
pretokenize -q --decode --to jsonl talks.tok > written
grep -q '"look; \[user\] q' written
grep -q '"\[user\] q' written
pack -q --chunk 64 -o talks/ < talks.tok

same() { cmp "$1/additional_chat_templates/tool_use.jinja" model/additional_chat_templates/tool_use.jinja; }
sft=("${options[@]}" --data talks --objective sft)
train "${sft[@]}" --init model --steps 2 --save-every 1 --out tuned > /dev/null
same tuned/latest
train "${sft[@]}" --init model --lora 2 --steps 1 --out adapted > /dev/null
same adapted/latest
train -q --merge adapted --out merged > /dev/null
same merged
train -q --average tuned/checkpoints/step-00000001 --average tuned --out averaged > /dev/null
same averaged
