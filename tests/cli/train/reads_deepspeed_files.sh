# --deepspeed takes DeepSpeed's JSON: behind flags, environment and --config, before a preset; a step has
# train_batch_size samples on any number of ranks; what is not known is refused by name and line.
value() { grep "^$1: " | sed 's/^[^:]*: //; s/"//g'; }
expect() { # expect KEY VALUE ARGUMENT...
  local key=$1 wanted=$2 got
  shift 2
  got=$(train --print-config "$@" 2> /dev/null | value "$key")
  [[ $got == "$wanted" ]] || { echo "$*: $key is '$got', not '$wanted'"; exit 1; }
}
cat > ds.json << 'END'
{
  "train_batch_size": 8,
  "train_micro_batch_size_per_gpu": 1,
  "gradient_accumulation_steps": "auto",
  "gradient_clipping": 0.5,
  "optimizer": {"type": "AdamW", "params": {"lr": 2e-3, "betas": [0.9, 0.99], "weight_decay": "auto"}},
  "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_num_steps": 2, "warmup_type": "linear", "total_num_steps": 3}},
  "bf16": {"enabled": false},
  "zero_optimization": {"stage": 2, "reduce_bucket_size": 262144, "overlap_comm": true,
                        "offload_optimizer": {"device": "cpu"}},
  "steps_per_print": 100
}
END
for pair in zero=2 ddp-bucket-mb=1.0 batch=1 clip=0.5 lr=0.002 beta2=0.99 schedule=linear min-lr-ratio=0 warmup=2 \
            steps=3 mixed-precision=no optimizer=adamw deepspeed=ds.json; do
  expect "${pair%%=*}" "${pair#*=}" --deepspeed ds.json
done
test -z "$(train --deepspeed ds.json --print-config 2> notices | value weight-decay)"
for told in steps_per_print offload_optimizer.device scheduler.type; do
  grep -q "ds.json: key '.*$told'" notices || { echo "no notice of $told"; exit 1; }
done

printf 'clip: 0.25\nlr: 1e-3\n' > c.yaml
expect clip 0.25 --deepspeed ds.json --config c.yaml
TRAINWRIGHT_CLIP=0.125 expect clip 0.125 --deepspeed ds.json --config c.yaml
expect clip 2 --deepspeed ds.json --config c.yaml --clip 2
expect zero 1 --deepspeed ds.json --zero 1
expect lr 0.002 --deepspeed ds.json --preset rft-fast
expect workers 4 --deepspeed ds.json --preset rft-fast
TRAINWRIGHT_DEEPSPEED=ds.json expect clip 0.5
printf 'deepspeed: ds.json\nbatch: 2\n' > d.yaml
expect clip 0.5 --config d.yaml
expect batch 2 --config d.yaml
# Options that exclude one of the file's take its place.
test -z "$(train --deepspeed ds.json --epochs 1 --print-config 2> /dev/null | value steps)"
test -z "$(train --deepspeed ds.json --warmup-ratio 0.1 --print-config 2> /dev/null | value warmup)"

refused() { # refused TEXT ARGUMENT...: a usage error that says it
  fails 2 "$1" train "${@:2}"
}
printf '{\n "zero_optimization": {\n  "stage": 3\n }\n}' > three.json
refused "three.json: key 'zero_optimization.stage': 3: does not exist here.*(line 3)" --deepspeed three.json
grep -q -- '--zero 2 divides all but' err
printf '{"zero_optimization": {"stagee": 1}}' > slip.json
refused "key 'zero_optimization.stagee' is none that is read here (line 1)" --deepspeed slip.json
grep -q "did you mean 'stage'" err
printf '{"zero_optimization": ' > cut.json
refused 'cut.json: is not valid JSON' --deepspeed cut.json
status=0
train --deepspeed nowhere.json 2> error || status=$?
test "$status" = 4

# A run: 8 samples a step on one process and on two, told by --explain, and remembered without the file.
seq 2000 > text
pretokenize text 2> /dev/null | pack --chunk 256 -o shards 2> /dev/null
cat > tiny.json << 'END'
{"model_type": "llama", "vocab_size": 512, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1,
 "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 256, "rms_norm_eps": 1e-5,
 "rope_theta": 10000, "tie_word_embeddings": true, "hidden_act": "silu"}
END
set -- --deepspeed ds.json --data shards --model tiny.json --seq 16 --threads 1
train "$@" --explain > told 2> /dev/null
grep -qE '^accum +8 +config +ds.json line 2, train_batch_size 8 on 1 rank' told || { grep accum told; exit 1; }
grep -qE '^zero +2 +config +ds.json line 9, zero_optimization.stage' told
train "$@" --clip 1 --explain 2> /dev/null | grep -qE '^clip +1(\.0)? +command line'
train "$@" --nproc 2 --out two 2> log || { cat log; exit 1; }
test "$(grep -c steps_per_print log)" = 1 || { echo "not told once"; cat log; exit 1; }
grep -qE '"accum": ?4\b' two/run.json || { cat two/run.json; exit 1; }
grep -q '^zero: 2' two/config.yaml || { cat two/config.yaml; exit 1; }
grep -q '^ddp-bucket-mb' two/config.yaml
if grep -q deepspeed two/config.yaml; then echo "the run needs the file"; exit 1; fi
train "$@" --batch 2 --accum 3 --steps 1 --out other 2> log
grep -q 'train_batch_size is 8, which is not --batch 2 x --accum 3: it is ignored' log || { cat log; exit 1; }
sed 's/"auto",$/3,/' ds.json > bad.json
shift 2
refused 'train_batch_size: is 8, which is not --batch 1 x --accum 3' --deepspeed bad.json "$@" --out bad
test ! -e bad
