# Who takes another schedule or optimizer has not asked for the numbers that a preset has for its own.
for i in $(seq 40); do echo "line $i of a text"; done | pretokenize -q | pack -q --chunk 64 -o data
cat > tiny.json << 'END'
{"model_type": "llama", "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
 "num_key_value_heads": 1, "vocab_size": 272, "max_position_embeddings": 256}
END
explain() { train --data data --model tiny.json --seq 32 --steps 4 --device cpu --mixed-precision no "$@" --explain > /dev/null; }
config() { train "$@" --print-config 2> /dev/null > config.yaml; }
has() { config "${@:2}" && grep -q "^$1:" config.yaml; }
lacks() { config "${@:2}" && ! grep -q "^$1:" config.yaml; }

explain --preset rft-fast --schedule one-cycle --warmup 0
explain --preset rft-fast --optimizer sgd
explain --preset rft-fast --optimizer lion
explain --preset refocused-test --optimizer sgd

has min-lr-ratio --preset rft-fast
lacks min-lr-ratio --preset rft-fast --schedule one-cycle
has beta2 --preset rft-fast --optimizer lion
lacks adam-eps --preset rft-fast --optimizer lion
lacks beta2 --preset rft-fast --optimizer sgd
has beta2 --preset rft-fast --optimizer adamw8bit

# What a user gives beside them is refused as ever.
status=0
explain --preset rft-fast --schedule one-cycle --warmup 0 --min-lr-ratio 0.1 2> errors || status=$?
test $status -eq 2
grep -q -e '--min-lr-ratio: has no meaning with --schedule one-cycle' errors
