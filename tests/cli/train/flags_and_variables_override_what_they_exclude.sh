# A flag takes precedence over a variable, and that over a file of --config, also where one option excludes another.
file() { printf '%b' "$1" > f.yaml; }

file 'max_steps: 10\n'
overrides "f.yaml: key 'max_steps' in line 1: --epochs overrides it" 'epochs: 1' steps train --config f.yaml --epochs 1
file 'lr: 0.1\nsteps: 10\n'
overrides "f.yaml: key 'steps' in line 2: --epochs overrides it" 'epochs: 1' steps TRAINWRIGHT_EPOCHS=1 train --config f.yaml
overrides 'TRAINWRIGHT_STEPS: --epochs overrides it' 'epochs: 1' steps TRAINWRIGHT_STEPS=10 train --epochs 1
file 'warmup_ratio: 0.1\n'
overrides "key 'warmup_ratio' in line 1: --warmup overrides it" 'warmup: 3' warmup-ratio train --config f.yaml --warmup 3
file 'beta1: 0.8\n'
overrides "--cycle-momentum overrides it" 'cycle-momentum: true' beta1 train --config f.yaml --cycle-momentum
file 'copy-command: "true"\n'
overrides '--copy-to overrides it' 'copy-to: "copies"' copy-command train --config f.yaml --copy-to copies
file 'adapter: a\n'
TRAINWRIGHT_DORA=false train --config f.yaml --print-config > out 2> err  # which repeats the default
grep -qx 'adapter: "a"' out
test ! -s err

# In one file, and among variables, it is an error that names the places.
cat > m.json << 'END'
{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 258, "hidden_size": 32, "intermediate_size": 64,
 "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16, "max_position_embeddings": 64,
 "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": true, "hidden_act": "silu"}
END
seq 200 | pretokenize -q | pack -q --chunk 64 -o shards/
file 'lr: 0.1\nsteps: 10\nepochs: 1\n'
fails 2 'exclude each other (f.yaml line 2; f.yaml line 3)' train --threads 1 --model m.json --config f.yaml
fails 2 'TRAINWRIGHT_STEPS, TRAINWRIGHT_EPOCHS, --tokens: exclude each other' \
  env TRAINWRIGHT_STEPS=1 TRAINWRIGHT_EPOCHS=1 train --threads 1 --model m.json

# nanoGPT's cosine ends with its steps, which another length replaces.
file 'max_iters: 40\nlr_decay_iters: 40\n'
fails 2 "key 'lr_decay_iters' in line 2: is not --epochs" train --config f.yaml --epochs 1 --print-config
