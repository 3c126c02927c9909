# Keys of TrainingArguments and nanoGPT that mean something by each other become the options that do the same.
# becomes YAML WANTED [ARGUMENT...]: what such a file makes of the options of WANTED, in the order of --print-config.
becomes() {
  local yaml=$1 wanted=$2 keys
  shift 2
  printf '%b' "$yaml" > file.yaml
  train --config file.yaml "$@" --print-config > out 2> notices || { cat notices; exit 1; }
  keys='steps|epochs|schedule|lr|warmup|warmup-ratio|decay-steps|min-lr-ratio|lora-targets|lora-save-modules'
  got=$(grep -E "^($keys): " out | tr -d '"' | tr '\n' ';') || true
  test "$got" = "$wanted" || { echo "$yaml: '$got', not '$wanted'"; cat notices; exit 1; }
}
refused() { printf '%b' "$2" > file.yaml && fails 2 "$1" train --config file.yaml --print-config; }

# nanoGPT's cosine ends at lr_decay_iters, which is the run's last step here.
nano='max_iters: 40\nlr_decay_iters: 40\nlearning_rate: 0.001\nwarmup_iters: 4\n'
becomes "$nano" 'steps: 40;lr: 0.001;schedule: cosine;warmup: 4;'
grep -q "key 'lr_decay_iters' in line 2 has no effect here" notices
becomes "${nano}min_lr: 1e-4\n" 'steps: 40;lr: 0.001;schedule: cosine;warmup: 4;min-lr-ratio: 0.1;'
becomes "${nano}min_lr: 1e-4\n" 'steps: 40;lr: 0.0004;schedule: cosine;warmup: 4;min-lr-ratio: 0.25;' --lr 0.0004
becomes "${nano}min_lr: 1e-4\n" 'steps: 40;lr: 0.001;schedule: linear;warmup: 4;min-lr-ratio: 0.5;' --schedule linear \
  --min-lr-ratio 0.5
refused "key 'lr_decay_iters' in line 2: is not max_iters" 'max_iters: 50\nlr_decay_iters: 40\n'
refused "key 'lr_decay_iters' in line 1: is where" 'lr_decay_iters: 40\n'
refused "key 'min_lr' in line 1: is a share of learning_rate" 'min_lr: 1e-4\n'
refused "key 'min_lr' in line 2: must lie between 0 and the learning rate" 'learning_rate: 1e-5\nmin_lr: 1e-4\n'

# Hugging Face's schedules.
becomes 'lr_scheduler_type: constant\nmax_steps: 40\n' 'steps: 40;schedule: constant;warmup: 0;'
grep -q "key 'lr_scheduler_type' in line 1 is read as warmup: 0, too" notices
becomes 'lr_scheduler_type: constant\nwarmup_steps: 3\nwarmup_ratio: 0.1\n' 'schedule: constant;warmup: 0;'
grep -q "key 'warmup_steps' in line 2 has no effect: lr_scheduler_type constant has no warm-up" notices
becomes 'lr_scheduler_type: constant\n' 'schedule: constant;warmup-ratio: 0.1;' --warmup-ratio 0.1
becomes 'lr_scheduler_type: constant_with_warmup\nwarmup_steps: 3\n' 'schedule: constant;warmup: 3;'
for curve in linear cosine; do
  becomes "lr_scheduler_type: $curve\n" "schedule: $curve;min-lr-ratio: 0;"
  becomes "lr_scheduler_type: $curve\nmin-lr-ratio: 0.2\n" "schedule: $curve;min-lr-ratio: 0.2;"
done
becomes 'lr_scheduler_type: cosine\nwarmup_steps: 3\n' 'schedule: one-cycle;warmup: 3;' --schedule one-cycle
becomes 'schedule: cosine\n' 'schedule: cosine;'

# What goes before what.
becomes 'max_steps: 40\nnum_train_epochs: 3\n' 'steps: 40;'
grep -q "key 'num_train_epochs' in line 2 has no effect: max_steps overrides it" notices
becomes 'max_steps: 0\nnum_train_epochs: 3\n' 'epochs: 3;'
becomes 'warmup_ratio: 0.1\nwarmup_steps: 0\n' 'warmup-ratio: 0.1;'
becomes 'warmup_ratio: 0.1\nwarmup_steps: 5\n' 'warmup: 5;'
becomes 'warmup_steps: 0.1\n' 'warmup-ratio: 0.1;'
becomes 'warmup_steps: 0\n' 'warmup: 0;'

# Lists of modules are one value, and messages name the keys of the file.
becomes 'lora_target_modules: [q_proj, v_proj]\nmodules_to_save: [lm_head]\n' \
  'lora-targets: q_proj,v_proj;lora-save-modules: lm_head;'
becomes 'target_modules: [q_proj]\nlora_modules_to_save: []\n' 'lora-targets: q_proj;'
refused "key 'learning_rate' in line 1: takes one value, not a list" 'learning_rate: [1, 2]\n'
refused "key 'learning_rate' in line 1: 'fast' is not a number" 'learning_rate: fast\n'
