# Lines of turns are conversations without --template, too: by the template of the checkpoint's training data, or else that of
# the model's folder, and a notice names it. Lines that have a text are continued as ever.
python3 -c 'print("abcabd" * 400, end="")' > text.txt
pretokenize -q --format file text.txt | pack -q --chunk 256 -o shards/
options=(-q --batch 1 --seq 128 --threads 1 --steps 1)
train "${options[@]}" --model ten-nano --out began > /dev/null
cp -r "$(readlink -f began/latest)" model
cat > model/chat_template.jinja << 'JINJA'
{% for m in messages %}[{{ m.role }}] {{ m.content }}{% if m.role == 'assistant' %}{{ eos_token }}{% endif %}
{% endfor %}{% if add_generation_prompt %}[assistant] {% endif %}
JINJA
echo '{"messages": [{"role": "user", "content": "a?"}, {"role": "assistant", "content": "a!"}]}' > talks.jsonl
pretokenize -q --records sft --template chatml talks.jsonl | pack -q --chunk 128 -o talks/
train "${options[@]}" --data talks --objective sft --init model --out tuned > /dev/null
{
  echo '{"messages": [{"role": "user", "content": "One?"}], "id": 1}'
  echo '{"messages": [{"role": "user", "content": "Two?"}, {"role": "assistant", "content": "2"}, {"role": "user", "content": "And?"}]}'
} > asked.jsonl
said() { generate --threads 1 --max-tokens 6 --checkpoint "$@" 2> err; }
for model in model tuned; do
  said $model --input asked.jsonl > by-itself
  grep -q 'conversations are written by ' err || { cat err; exit 1; }
  test $model = tuned && template=chatml || template=model
  said $model --input asked.jsonl --template $template > by-name
  cmp by-itself by-name
  said $model < asked.jsonl | cmp by-itself -
done
prompt_tokens() {
  said model --input asked.jsonl --summary told.json "$@" > /dev/null
  python3 -c 'import json; print(json.load(open("told.json"))["prompt_tokens"])'
}
test "$(prompt_tokens)" = "$(prompt_tokens --template model)"
test "$(prompt_tokens)" != "$(prompt_tokens --template chatml)"

# A text is continued, whatever the line has besides; and what a model without a template cannot read is refused with the way out.
echo '{"prompt": "abc", "note": [{"role": "user", "content": "One?"}]}' > texts.jsonl
said model --input texts.jsonl > by-itself
if grep -q 'conversations are written by' err; then cat err; exit 1; fi
said model --prompt abc --format jsonl > by-prompt
python3 -c 'import json; assert json.load(open("by-itself"))["ids"] == json.load(open("by-prompt"))["ids"]'
fails 3 'with --template conversations are prompts' generate --threads 1 --checkpoint began --input asked.jsonl
fails 2 'a template says where BOS is' generate --threads 1 --checkpoint model --input asked.jsonl --bos
