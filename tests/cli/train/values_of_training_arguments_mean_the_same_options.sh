# Values of TrainingArguments make the run that options make, and one that asks for another run is refused by its name.
# same YAML OPTION...: the file is what the options are; notices stay in ./notices.
same() {
  printf '%b' "$1" > file.yaml
  shift
  train --config file.yaml "${data[@]}" --print-config > theirs 2> notices || { cat file.yaml notices; exit 1; }
  train "${data[@]}" "$@" --print-config > ours
  cmp theirs ours || { cat file.yaml; diff theirs ours; exit 1; }
}
refused() {
  printf '%b' "$2" > file.yaml
  fails 2 "$1" train --config file.yaml "${data[@]}" "${@:3}" --print-config
}
data=()

# When it is evaluated, saved and recorded.
same 'eval_strategy: no\neval_steps: 500\n'
grep -q "'eval_steps' in line 2 has no effect: eval_strategy is no" notices
same 'eval_strategy: steps\neval_steps: 50\n' --eval-every 50
same 'evaluation_strategy: steps\nlogging_steps: 20\n' --eval-every 20 --log-every 20
same 'eval_strategy: epoch\nsave_strategy: epoch\nload_best_model_at_end: true\n' --save-every epoch --keep-best 1
refused "'eval_strategy' in line 1: is epoch" 'eval_strategy: epoch\n'
same 'save_strategy: no\nsave_steps: 500\n' --save-every 0
same 'save_strategy: epoch\nsave_steps: 500\n' --save-every epoch
same 'save_strategy: steps\nsave_steps: 50.0\nsave_total_limit: 3\n' --save-every 50 --keep 3
same 'save_strategy: best\neval_steps: 50\nload_best_model_at_end: True\n' --eval-every 50 --save-every 50 --keep-best 1
refused "'sometimes' has no counterpart" 'save_strategy: sometimes\n'
same 'logging_strategy: epoch\nlogging_steps: 0.1\n'
same 'eval_strategy: no\neval_steps: 0.1\nsave_strategy: epoch\nsave_steps: 0.1\n' --save-every epoch
same 'eval_strategy: steps\nlogging_steps: 20\neval-every: 50\n' --eval-every 50 --log-every 20
same 'save_strategy: best\neval_strategy: steps\nlogging_steps: 20\n' --eval-every 20 --log-every 20 --save-every 20 --keep-best 1
data=(--save-every 100)
same 'save_strategy: best\neval_steps: 50\n' --eval-every 50 --keep-best 1
data=(--eval-every 50)
same 'save_strategy: best\neval_steps: 20\n' --save-every 50 --keep-best 1
data=()
same 'max_steps: 1000\nlogging_steps: 0.01\nsave_steps: 0.25\n' --steps 1000 --log-every 10 --save-every 250
refused "'save_steps' in line 1: is a share" 'save_steps: 0.25\n'
same 'metric_for_best_model: eval_loss\ngreater_is_better: False\n'
refused "'accuracy' has no counterpart" 'metric_for_best_model: accuracy\n'
data=(--eval-data held)
same 'eval_strategy: no\n' --eval-every 0
data=(--eval-every 7)
same 'eval_strategy: epoch\n'
data=()

# How it learns.
same 'optim: paged_adamw_8bit\n' --optimizer adamw8bit
grep -q "'optim' in line 1 keeps the moments of embeddings in 8 bits, too" notices
data=(--optimizer lion)
same 'optim: adamw_bnb_8bit\n'
if grep -q 'moments of embeddings' notices; then cat notices; exit 1; fi
data=()
same 'adafactor: false\nuse_legacy_prediction_loop: false\n'
refused "'true' has no counterpart" 'adafactor: true\n'
same 'average_tokens_across_devices: false\n'
grep -q "'average_tokens_across_devices' in line 1 has no effect: the loss of a step" notices
refused "'false' has no counterpart" 'average_tokens_across_devices: false\nnproc: 2\n'
refused "'false' has no counterpart" 'average_tokens_across_devices: false\n' --nproc 2
RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 refused "'false' has no counterpart" 'average_tokens_across_devices: false\n'
same 'optim: sgd\nadam_beta1: 0.9\nadam_beta2: 0.999\nadam_epsilon: 1e-8\n' --optimizer sgd --beta1 0
same 'optim: sgd\ncycle_momentum: true\n' --optimizer sgd --cycle-momentum
same 'lr_scheduler_type: cosine\nlr_scheduler_kwargs: {min_lr_rate: 0.1}\n' --schedule cosine --min-lr-ratio 0.1
refused "must be a single value" 'learning_rate: {}\n'
same 'optim: lion_32bit\nadam_beta1: 0.9\nadam_epsilon: 1e-8\n' --optimizer lion --beta1 0.9
same 'lr_scheduler_type: cosine_with_min_lr\nlr_scheduler_kwargs: {min_lr_rate: 0.1}\n' --schedule cosine --min-lr-ratio 0.1
same 'learning_rate: 0.001\nlr_scheduler_type: cosine_with_min_lr\nlr_scheduler_kwargs:\n  min_lr: 0.0001\n' \
  --lr 0.001 --schedule cosine --min-lr-ratio 0.1
same 'lr_scheduler_type: warmup_stable_decay\nlr_scheduler_kwargs: {num_decay_steps: 9, decay_type: 1-sqrt}\n' \
  --schedule wsd --decay-steps 9
refused "'lr_scheduler_kwargs.power' in line 1: has no counterpart" 'lr_scheduler_kwargs: {power: 2}\n'
same 'group_by_length: True\n' --group-by-length
same 'train_sampling_strategy: group_by_length\n' --group-by-length
refused "'sequential' has no counterpart" 'train_sampling_strategy: sequential\n'
refused "'5' has no counterpart" 'neftune_noise_alpha: 5\n'
data=(--warmup-ratio 0.1 --steps 9)
same 'warmup_steps: 0\nnum_train_epochs: 3\n'
data=()

# What is off is off, whatever a preset has.
data=(--preset grit-fast)
same 'bf16: false\nfp16: False\ngradient_checkpointing: false\n' --mixed-precision no --checkpoint-activations no
same 'fp16: false\n' --mixed-precision no
same 'bf16: false\nfp16: true\n' --mixed-precision fp16
same 'fp16: false\nmixed_precision: fp16\n' --mixed-precision fp16
data=(--preset lora-fast)
same 'load_in_4bit: false\n' --quant none
data=()

# Where it computes.
same 'use_cpu: true\nno_cuda: true\n' --device cpu
same 'bf16: true\nfp16: FALSE\n' --mixed-precision bf16
same 'use_cpu: true\ntorch_empty_cache_steps: 4\nauto_find_batch_size: True\nddp_timeout: 90\n' \
  --device cpu --empty-cache-every 4 --auto-oom --dist-timeout 90
same 'gradient_checkpointing: true\nactivation_checkpointing: true\ngradient_checkpointing_kwargs: {use_reentrant: false}\n' \
  --checkpoint-activations full
same 'deepspeed: null\nfsdp: []\nfsdp_config: {min_num_params: 0}\nddp_backend: nccl\n'
refused "'deepspeed.zero' in line 1: has no counterpart" 'deepspeed: {zero: 2}\n'
refused "'full_shard' has no counterpart" 'fsdp: [full_shard]\n'
refused "'accelerator_config.split_batches' in line 1: 'true'" 'accelerator_config: {split_batches: true}\n'
refused "key 'lr' has no value" 'lr: null\n'
same 'push_to_hub: False\nreport_to: none\nhub_token: secret\n'
if grep -q secret notices; then exit 1; fi
fails 2 'nothing is uploaded' train --push-to-hub
fails 2 'its name here is --eval-every' train --eval_strategy no

# A dry run of both has the same settings.
python3 -c 'for i in range(64): print(f"a line of text, number {i}, and {i * 7 % 64}")' > text
pretokenize -q text | pack -q --chunk 64 -o shards/
cat > file.yaml << 'YAML'
per_device_train_batch_size: 2
gradient_accumulation_steps: 2
num_train_epochs: 2
learning_rate: 1e-3
lr_scheduler_type: linear
warmup_steps: 3
weight_decay: 0.0
adam_beta2: 0.999
seed: 42
eval_strategy: no
save_strategy: epoch
use_cpu: true
YAML
run=(--data shards --model llama-1m --seq 64 --threads 1 --dry-run)
train -q "${run[@]}" --config file.yaml --summary theirs.json > /dev/null
train -q "${run[@]}" --batch 2 --accum 2 --epochs 2 --lr 1e-3 --schedule linear --min-lr-ratio 0 --warmup 3 --weight-decay 0 \
  --beta2 0.999 --seed 42 --save-every epoch --device cpu --summary ours.json > /dev/null
python3 - << 'PYTHON'
import json
theirs, ours = (json.load(open(name)) for name in ("theirs.json", "ours.json"))
def settings(summary):
    """What neither a clock nor the machine says."""
    memory = {part: summary["memory_bytes"][part] for part in ("parameters", "gradients", "optimizer", "activations", "logits")}
    return memory, {key: summary[key] for key in ("parameters", "steps", "tokens", "checkpoint_bytes", "disk_bytes")}
assert ours["steps"] > 1
assert settings(theirs) == settings(ours), (settings(theirs), settings(ours))
PYTHON
