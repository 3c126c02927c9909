# A template whose prompt opens a thought that its answers lack, as that of DeepSeek-R1, is one to answer by, if none to
# train by.
python3 -c 'print("abcabd" * 400, end="")' > text.txt
pretokenize -q --format file text.txt | pack -q --chunk 256 -o shards/
train -q --model ten-nano --steps 2 --batch 1 --seq 64 --threads 1 --out tiny > /dev/null
cat > thinks.jinja <<'JINJA'
{% for m in messages %}{{ m.role + ': ' + m.content + '\n' }}{% endfor %}
{% if add_generation_prompt %}{{ 'assistant: <think>' }}{% endif %}
JINJA
said() { generate -q --checkpoint tiny --threads 1 --max-tokens 4 "$@"; }
echo '{"prompt": "abc"}' | said --template thinks.jinja --input - > by-template
echo '{"prompt": "user: abc\nassistant: <think>"}' | said --input - > by-text
python3 - <<'PYTHON'
import json
by_template, by_text = json.load(open("by-template")), json.load(open("by-text"))
assert by_template["ids"] == by_text["ids"], (by_template, by_text)
PYTHON
test "$(printf 'abc' | said --template thinks.jinja --chat --format jsonl | wc -l)" = 1
echo '{"prompt": "abc", "response": "d"}' > talk.jsonl
fails 2 'begins otherwise' pretokenize --records sft --template thinks.jinja talk.jsonl -o out.tokens
