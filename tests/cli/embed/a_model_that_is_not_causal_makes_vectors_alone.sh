# A config.json with is_causal: false asks for attention in both directions: vectors are made by it, unless --attn says
# otherwise, and trained as train's --attn says; what predicts tokens refuses it by the field's name.
grit_sets
cat > tiny.json << 'JSON'
{"model_type": "llama", "vocab_size": 258, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
 "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 256, "hidden_act": "silu"}
JSON
train -q --model tiny.json --data talks --steps 1 --batch 1 --seq 64 --threads 1 --save-model-only --out run > /dev/null
mkdir causal both
cp run/latest/config.json run/latest/tokenizer* run/latest/model.safetensors causal
cp causal/* both
sed -i 's/^{/{\n  "is_causal": false,/' both/config.json
printf 'one text\nanother one\n' > lines.txt
embed --checkpoint both lines.txt -o both.jsonl --threads 1 2> log
grep -q 'warning: both/config.json: is_causal is false: attention is bidirectional' log || { cat log; exit 1; }
embed -q --checkpoint causal lines.txt -o causal.jsonl --threads 1
embed -q --checkpoint causal lines.txt -o bb.jsonl --attn bb --threads 1
embed -q --checkpoint both lines.txt -o cccc.jsonl --attn cccc --threads 1
cmp both.jsonl bb.jsonl
cmp causal.jsonl cccc.jsonl
if cmp -s both.jsonl causal.jsonl; then echo 'attention is the same'; exit 1; fi

said='both/config.json: is_causal false is not supported here'
train=(train -q --init both --steps 1 --batch 4 --threads 1)
fails 3 "$said" generate -q --checkpoint both --prompt one --max-tokens 1
fails 3 "$said" evaluate -q --checkpoint both --data talks --threads 1
fails 3 "$said" "${train[@]}" --data talks --seq 64 --out none
fails 3 "$said" "${train[@]}" --objective grit --mode generative --data talks --out none
cp both/config.json both.json
fails 3 'both.json: is_causal false is not supported here' \
  train -q --model both.json --data talks --seq 64 --steps 1 --threads 1 --out none
test ! -e none
"${train[@]}" --objective grit --mode unified --data pairs --data talks --out trained > /dev/null
if grep -q is_causal trained/latest/config.json; then cat trained/latest/config.json; exit 1; fi
embed -q --checkpoint trained lines.txt -o trained.jsonl --threads 1
generate -q --checkpoint trained --prompt one --max-tokens 1 > /dev/null
