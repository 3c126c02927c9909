# What is no template is a wrong use; a template that fails with a conversation, or refuses it, makes that bad input.
python3 -c 'print("abcabd" * 400, end="")' > text.txt
pretokenize -q --format file text.txt | pack -q --chunk 256 -o shards/
train -q --model ten-nano --steps 1 --batch 1 --seq 64 --threads 1 --out tiny > /dev/null
echo '{% nothing %}' > none.jinja
echo '{{ messages[0].content }}{{ 1 // 0 }}' > failing.jinja
echo "{{ raise_exception('not this one') }}" > refusing.jinja
answer() { generate -q --checkpoint tiny --threads 1 --max-tokens 1 "$@"; }
echo '{"prompt": "abc"}' > prompts.jsonl
fails 2 'none.jinja' answer --template none.jinja --input prompts.jsonl
fails 3 'failing.jinja' answer --template failing.jinja --input prompts.jsonl
fails 3 'refuses it: not this one' answer --template refusing.jinja --input prompts.jsonl
