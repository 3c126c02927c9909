# What TrainingArguments and their like call an option is read as it in a configuration file, and told on a command line.
told() { fails 2 "$2" train "$1"; grep -q "^train: error: ${1%%=*}: unknown option" err; }
told --learning-rate=1e-4 'its name here is --lr$'
told --learning_rate 'its name here is --lr$'
told --per_device_train_batch_size 'its name here is --batch: samples of one micro-batch'
told --gradient-accumulation-steps 'its name here is --accum'
told --bf16 'its name here is --mixed-precision bf16'
told --gradient_checkpointing 'its name here is --checkpoint-activations full'
told --report-to 'it has no effect here'
told --fp16-opt-level '--mixed-precision fp16 multiplies in fp16'
told --gradient-clip-norm '--clip'
told --preserve-rng-state 'what is computed again draws the same'
told --persistent 'it has no effect here: --workers are threads that live as long as the run'
told --persistent_workers '--workers are threads'
told --pin_memory 'its name here is --pin$'
told --prefetch-factor 'its name here is --prefetch$'
told --weight_decay 'did you mean --weight-decay'
cat > hf.yaml << 'YAML'
learning_rate: 1e-4
per_device_train_batch_size: 2
gradient_accumulation_steps: 4
max_steps: -1
num_train_epochs: 3
bf16: true
fp16: false
lr_scheduler_type: constant_with_warmup
warmup_steps: 7
weight_decay: 0.05
max_grad_norm: 0.5
optim: adamw_torch
gradient_checkpointing: true
dataloader_pin_memory: false
report_to: [wandb]
adam_epsilon: 1e-6
output_dir: here
run_name: first
seed: 3
data_seed: 3
tf32: true
packing: false
group_by_length: true
YAML
cat > ours.yaml << 'YAML'
lr: 1e-4
batch: 2
accum: 4
epochs: 3
mixed-precision: bf16
schedule: constant
warmup: 7
weight-decay: 0.05
clip: 0.5
optimizer: adamw
checkpoint-activations: full
pin: off
adam-eps: 1e-6
out: here
seed: 3
tf32: on
packing: off
group-by-length: true
YAML
train --config hf.yaml --print-config > theirs 2> notices
train --config ours.yaml --print-config > ours
cmp theirs ours
grep -q "key 'learning_rate' in line 1 is read as lr" notices
grep -q "key 'report_to' in line 15 has no effect here" notices
test "$(grep -c weight_decay notices)" = 0
test "$(train --config hf.yaml --lr 3e-4 --print-config 2> /dev/null | grep '^lr:')" = 'lr: 3e-4'
echo 'optim: adafactor' > bad.yaml
fails 2 "'adafactor' has no counterpart here" train --config bad.yaml --print-config
printf 'lr: 1\nlearning_rate: 2\n' > bad.yaml
fails 2 "keys 'lr' and 'learning_rate' are the same option" train --config bad.yaml --print-config
printf 'bf16: true\nfp16: true\n' > bad.yaml
fails 2 "keys 'bf16' and 'fp16' are the same option" train --config bad.yaml --print-config
printf 'learning_rat: 2\n' > bad.yaml
fails 2 "unknown key 'learning_rat'" train --config bad.yaml --print-config
# What each name stands for is there.
train --help > help
python3 - << 'PYTHON'
import os, pathlib, re, subprocess
help_text = pathlib.Path("help").read_text()
tools = pathlib.Path(os.environ["TRAINWRIGHT_SOURCE_DIR"], "tools")
table = (tools / "train_synonym_options.cc").read_text() + (tools / "training_arguments_options.cc").read_text()
keys = set(re.findall(r'\.key = "([^"]+)"', table))
chosen = re.findall(r'(?:Choosing|Switching)\("([^"]+)", "([^"]+)"(?:, "([^"]+)")?\)', table)
assert len(keys) > 20 and len(chosen) > 4
for key in keys:
    assert re.search(rf"^  --{key}\b", help_text, re.M), key
for key, *values in chosen:
    for value in filter(None, values):
        subprocess.run(["train", f"--{key}", value, "--print-config"], check=True, stdout=subprocess.DEVNULL)
PYTHON
