# The recommended rejection fine-tuning run: warm-up and logging period are 50 and the run has 42 steps. It is told at
# the start and recorded; so are the other traps that this run has.
seq 2000 > text
pretokenize text 2> /dev/null | pack --chunk 256 -o shards 2> /dev/null
cat > tiny.json << 'END'
{"model_type": "llama", "vocab_size": 512, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1,
 "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 256, "rms_norm_eps": 1e-5,
 "rope_theta": 10000, "tie_word_embeddings": true, "hidden_act": "silu"}
END
set -- --preset rft-fast --model tiny.json --steps 42 --seq 16 --threads 1
train "$@" --mixed-precision no --explain > told 2> warned
grep -q 'warm-up of 50 steps does not end before the run.s 42 steps' warned
grep -q -- '--log-every 50 is more than the run.s 42 steps' warned
grep -q 'no run resumes from these' warned
grep -qE '^batch +16 +preset +preset rft-fast' told
grep -qE '^steps +42 +command line' told
grep -q '^\[Optimizer\]' told

train "$@" --batch 8 --eval-every 20 --max-minutes 0.0001 --out run --cost-per-hour 36 2> /dev/null && exit 1
train "$@" --batch 8 --max-minutes 0.0001 --out run --cost-per-hour 36 2> log
for text in 'warm-up of 50 steps' 'log-every 50 is' 'accum 8 keeps it' 'fp16 on a CPU' 'no run resumes'; do
  grep -q "\"type\":\"warning\".*$text" run/metrics.jsonl || { echo "no record of: $text"; exit 1; }
  grep -q "$text" run/report.html || { echo "not in the report: $text"; exit 1; }
done
grep -q '"cost_per_hour":36' run/metrics.jsonl
grep -q 'cost [0-9.]*, of the whole run' log
python3 - << 'END'
import json
metrics = json.load(open("run/training_metrics.json"))
assert sorted(metrics) == ["epoch", "eval_loss", "eval_steps", "learning_rate", "loss", "step"], metrics
END

# Saves each epoch, and data gone over many times: 4 samples of 16 tokens.
printf 'abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz0123456' > few
pretokenize few 2> /dev/null | pack --chunk 64 -o few-shards 2> /dev/null
train --data few-shards --model tiny.json --seq 16 --batch 1 --epochs 20 --save-every epoch --keep 0 --threads 1 \
  --out many 2> log
grep -q 'goes over its data 20.0 times' log
test "$(ls many/checkpoints | wc -l)" = 20
train --data few-shards --model tiny.json --seq 16 --batch 1 --steps 400 --explain 2>&1 > /dev/null |
  grep -q 'goes over its data 100.0 times'

# A lowest learning rate means nothing to a schedule that stays at the peak; 0 is what other programs call it.
here=(--model tiny.json --data shards --seq 16 --schedule constant)
explain_fails '--min-lr-ratio: has no meaning with --schedule constant' "${here[@]}" --min-lr-ratio 0.5
expect_explained '0.0 command' min-lr-ratio "${here[@]}" --min-lr-ratio 0
printf 'min-lr-ratio: 0.1\n' > of-a-run.yaml
expect_explained '0.1 config' min-lr-ratio "${here[@]}" --config of-a-run.yaml
