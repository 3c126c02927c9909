# scripts/finetune.sh: from a model's folder and a file of conversations to a merged model and an answer; again without effect.
finetune=$TRAINWRIGHT_SOURCE_DIR/scripts/finetune.sh
python3 -c 'print("abcabd" * 400, end="")' > text.txt
pretokenize -q --format file text.txt | pack -q --chunk 256 -o shards/
train -q --batch 1 --seq 64 --threads 1 --model ten-nano --steps 1 --out began > /dev/null
cp -r "$(readlink -f began/latest)" model
echo '{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ eos_token }}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}' \
  > model/chat_template.jinja
python3 - << 'PYTHON'
import json
with open("talks.jsonl", "w") as talks:
    for i in range(8):
        talks.write(json.dumps({"messages": [{"role": "user", "content": f"{i}?"}, {"role": "assistant", "content": f"{i}!" * 8}]}) + "\n")
    talks.write(json.dumps({"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!" * 999}]}) + "\n")
PYTHON
"$finetune" --out tuned --epochs 2 --lora 2 model talks.jsonl -- --threads 1 --batch 1 > told 2>&1
grep -q 'left out 1 document (over_max_record_tokens)' told
cmp tuned/model/chat_template.jinja model/chat_template.jinja
grep -qx '0?' told
steps=$(grep -c '"type":"step"' tuned/run/metrics.jsonl)
test "$steps" = 2
sha256sum tuned/model/* > before
"$finetune" --out tuned --epochs 2 --lora 2 model talks.jsonl -- --threads 1 --batch 1 > again 2>&1
sha256sum --quiet -c before
test "$(grep -c '"type":"step"' tuned/run/metrics.jsonl)" = 2
head -n 4 talks.jsonl > fewer.jsonl
fails 1 'was made of other conversations' "$finetune" --out tuned model fewer.jsonl
# What an earlier version made, which recorded fewer files, goes on.
recorded=$(< tuned/made-of)
files=$(for file in config.json chat_template.jinja tokenizer_config.json tokenizer.json tokenizer.model tokenizer.tiktoken; do
  printf '%s ' "$file"
  if [[ -f model/$file ]]; then sha256sum < "model/$file"; else echo none; fi
done | sha256sum)
echo "$(sha256sum < talks.jsonl) $files ${recorded##* }" > tuned/made-of
"$finetune" --out tuned --epochs 2 --lora 2 model talks.jsonl -- --threads 1 --batch 1 > again 2>&1
sha256sum --quiet -c before
fails 1 'was made of other conversations' "$finetune" --out tuned model fewer.jsonl
echo "$recorded" > tuned/made-of
fails 1 'has no config.json' "$finetune" . talks.jsonl
# Data that nothing came of says why, and gives way to other data.
echo '{"text": "none"}' > keyless.jsonl
fails 3 '1 without the keys of a conversation' "$finetune" --out corrected model keyless.jsonl
fails 3 '9 longer than --seq 4 tokens' "$finetune" --out corrected --seq 4 model talks.jsonl
"$finetune" --out corrected --epochs 1 --lora 2 model fewer.jsonl -- --threads 1 --batch 1 > told 2>&1
grep -q 'the model is corrected/model' told
fails 1 'was made of other conversations' "$finetune" --out corrected model talks.jsonl
fails 1 'cannot be read' "$finetune" model none.jsonl
fails 1 'is no file, and it is read more than once' "$finetune" model <(cat talks.jsonl)
fails 1 'takes a model and a file' "$finetune" model

# A model without a template is tuned on none that nobody named.
cp -r model bare
rm bare/chat_template.jinja
fails 2 "bare has neither chat_template.jinja nor a chat_template" "$finetune" --out untuned bare talks.jsonl -- --threads 1 --batch 1
grep -q -e '--template plain' err
test ! -e untuned/run
"$finetune" --template plain --out untuned --epochs 1 --lora 2 bare talks.jsonl -- --threads 1 --batch 1 > told 2>&1
grep -q 'the model is untuned/model' told
fails 1 'with another --seq or --template' "$finetune" --template chatml --out untuned bare talks.jsonl

# A name stays where a template's text changes, and so may the model's folder where its files do.
cp model/chat_template.jinja own.jinja
"$finetune" --template own.jinja --out by_name --epochs 1 --lora 2 bare talks.jsonl -- --threads 1 --batch 1 > told 2>&1
echo '{% for m in messages %}[{{ m.role }}]{{ m.content }}{{ eos_token }}{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}' \
  > own.jinja
fails 1 'was made of other conversations' "$finetune" --template own.jinja --out by_name bare talks.jsonl
cp model/chat_template.jinja kept.jinja
cp own.jinja model/chat_template.jinja
fails 1 'was made of other conversations' "$finetune" --out tuned model talks.jsonl
cp kept.jinja model/chat_template.jinja
for file in special_tokens_map.json added_tokens.json; do
  echo '{}' > "model/$file"
  fails 1 'was made of other conversations' "$finetune" --out tuned model talks.jsonl
  rm "model/$file"
done

# The question is that of what was read: not of lines left out, behind a byte order mark, of any shape and compression.
asks() {
  "$finetune" --out asked --epochs 1 --lora 2 model "$1" -- --threads 1 --batch 1 > told 2>&1
  grep -qx "$2" told
  grep -q 'the model is asked/model' told
  rm -r asked
}
{ echo 'not json' && echo '{"messages": null}' && echo '{"question": "Why\nso?", "answer": "So."}'; } > left_out.jsonl
asks left_out.jsonl 'Why so?'
printf '\xEF\xBB\xBF{"prompt": "Marked?", "response": "Yes."}\n' > marked.jsonl
asks marked.jsonl 'Marked?'
echo '{"conversations": [{"from": "human", "value": "Hi there?"}, {"from": "gpt", "value": "Hello"}]}' | gzip > shared.jsonl.gz
asks shared.jsonl.gz 'Hi there?'
echo '{"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": [{"type": "text", "text": "In parts?"}]},
  {"role": "assistant", "content": "A"}]}' | tr -d '\n' > parts.jsonl
echo '{% for m in messages %}<{{ m.role }}>{{ m.content if m.content is string else m.content[0].text }}{{ eos_token }}{% endfor %}' \
  '{% if add_generation_prompt %}<assistant>{% endif %}' | sed 's/ {% if/{% if/' > model/chat_template.jinja
asks parts.jsonl 'In parts?'
echo '{"messages": [{"role": "user", "content": " "}, {"role": "assistant", "content": "A"}]}' > blank.jsonl
asks blank.jsonl '.*no question was found in blank.jsonl.*'
