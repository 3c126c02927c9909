# An option that only a family of models has is a flag, a key and a variable alike; it chooses among the shapes of the
# family's presets, and is refused where the shape is given and says otherwise.
seq 2000 > text
pretokenize -q text | pack -q --chunk 512 -o shards/
expect_explained 'lru default' ten-init --model ten-nano
expect_explained 'compat command' ten-init --model ten-nano --ten-init compat
printf 'selective: "on"\n' > a.yaml
expect_explained 'on config' selective --model ten-nano --config a.yaml
TRAINWRIGHT_TEN_SELECTIVE=on expect_explained 'on environment' selective --model ten-nano
TRAINWRIGHT_TEN_CHUNK=64 expect_explained '64 environment' ten-chunk --model ten-nano
expect_explained '' ten-init --model llama-1m

explain_fails '--ten-init: has a meaning only with models of the family ten' --model llama-1m --ten-init lru
TRAINWRIGHT_TEN_SELECTIVE=on explain_fails \
  'TRAINWRIGHT_TEN_SELECTIVE: has a meaning only with models of the family ten' --model llama-1m
explain_fails '--ten-scan: has no meaning for llama-1m' --model llama-1m --ten-scan chunked
TRAINWRIGHT_TEN_SCAN=chunked explain_fails 'TRAINWRIGHT_TEN_SCAN: has no meaning' --model llama-1m
explain_fails 'a whole number from 1 to 1048576' --model ten-nano --ten-chunk 0

cat > tiny.json << 'END'
{"model_type": "ten", "vocab_size": 260, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2,
 "num_eigenstates": 8, "num_heads": 2, "init": "compat", "max_position_embeddings": 64}
END
expect_explained 'compat default' ten-init --model tiny.json
expect_explained 'compat command' ten-init --model tiny.json --ten-init compat
explain_fails '--ten-init: lru differs from compat of tiny.json' --model tiny.json --ten-init lru
sed 's/"num_heads": 2/"num_heads": 3/' tiny.json > bad.json
fails 3 'bad.json: num_heads 3 does not divide the 8 of num_eigenstates' train -q --explain --steps 1 --model bad.json
