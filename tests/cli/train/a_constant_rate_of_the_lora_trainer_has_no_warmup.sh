# lr_scheduler_type constant of its file takes the place of the trainer's default warm-up, and gives way to a flag's.
config() { train --config lora.yaml "$@" --print-config 2> told | tr -d '"' > config.yaml; }
lacks() { if grep "^$1:" config.yaml; then exit 1; fi; }
printf 'lora: {lr_scheduler_type: constant}\n' > lora.yaml
config
grep -qx 'schedule: constant' config.yaml
grep -qx 'warmup: 0' config.yaml
lacks warmup-ratio
config --warmup-ratio 0.1
grep -qx 'warmup-ratio: 0.1' config.yaml
lacks warmup
printf 'lora: {lr_scheduler_type: constant_with_warmup}\n' > lora.yaml
config
grep -qx 'warmup-ratio: 0.03' config.yaml
lacks warmup
