# Of records that an objective measures in its own way no logits are computed: to ask for them is refused, and an older file stays.
grit_sets
train -q --data talks/ --objective sft --model llama-1m --steps 1 --batch 1 --seq 64 --threads 1 --out runs/tiny
printf 'old' > logits.safetensors
fails 2 '--logits: has a meaning where tokens are predicted' \
  evaluate -q --checkpoint runs/tiny --data pairs/ --threads 1 --logits logits.safetensors
test "$(cat logits.safetensors)" = old
evaluate -q --checkpoint runs/tiny --data talks/ --threads 1 --logits logits.safetensors > /dev/null
test "$(cat logits.safetensors | head -c 3)" != old
