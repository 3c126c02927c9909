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
fails 1 'has no config.json' "$finetune" . talks.jsonl
fails 1 'cannot be read' "$finetune" model none.jsonl
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
