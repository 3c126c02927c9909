# --kernels: auto is measured once a machine and remembered in a file; a run stores what it computed by and goes on with it;
# --deterministic takes the usual ones; names that there are not are refused, and another choice on resume is told.
export XDG_CACHE_HOME=$PWD/cache
unset TRAINWRIGHT_KERNELS
seq 2000 > text
pretokenize -q text | pack -q --chunk 512 -o shards/
cat > tiny.json << 'END'
{"model_type": "llama", "vocab_size": 512, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
 "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 256, "rms_norm_eps": 1e-5,
 "rope_theta": 10000, "tie_word_embeddings": false, "hidden_act": "silu"}
END
go() {
  train --model tiny.json --batch 4 --seq 128 --schedule constant --warmup 0 --threads 1 --device cpu "$@" > /dev/null 2> log || { cat log; exit 1; }
}
kernels_of() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1] + "/run.json"))["device_choices"]["cpu_kernels"])' "$1"; }

go --steps 2 --out first
if grep -q avx512vl /proc/cpuinfo; then
  grep -q "kernels: measured GEMMs of 1 thread, once for this machine: .* taking fp32=" log || { cat log; exit 1; }
  test -s cache/trainwright/kernels.json
  kept=$(python3 -c 'import json; print(json.load(open("cache/trainwright/kernels.json"))["machines"][0]["kernels"])')
  test "$(kernels_of first)" = "$kept"
fi
go --steps 2 --out second
if grep -q "measured" log; then cat log; exit 1; fi
test "$(kernels_of first)" = "$(kernels_of second)"
cmp first/latest/model.safetensors second/latest/model.safetensors
grep -q "GEMMs $(kernels_of second)" log || { cat log; exit 1; }

# Named kernels, and a run that goes on by them though auto would take others.
go --steps 4 --kernels fp32=library,bf16=emulated --out whole
test "$(kernels_of whole)" = "fp32=library,bf16=emulated"
go --steps 2 --kernels fp32=library,bf16=emulated --out parted
grep -q '^kernels: "fp32=library,bf16=emulated"' parted/config.yaml
go --resume --out parted --steps 4
if grep -q "kernels .* instead of" log; then cat log; exit 1; fi
test "$(kernels_of parted)" = "fp32=library,bf16=emulated"
cmp whole/latest/model.safetensors parted/latest/model.safetensors

# A run whose option says less than what it stored goes on by what it stored.
go --steps 2 --kernels fp32=library --out less
sed -i 's/^kernels:.*/kernels: "auto"/' less/config.yaml
go --resume --out less --steps 4
if grep -q "kernels .* instead of" log; then cat log; exit 1; fi

# bf16 is emulated by kernels that are named so, and is what other kernels would not give.
go --steps 2 --mixed-precision bf16 --kernels bf16=emulated --out emulated
head -n 1 emulated/metrics.jsonl | grep -q '"rounded_to":"bf16"' || { head -n 1 emulated/metrics.jsonl; exit 1; }

# Without a clock.
rm -r cache
go --steps 1 --deterministic --out fixed
go --steps 1 --kernels usual --out usual
test ! -e cache
test "$(kernels_of fixed)" = "$(kernels_of usual)"

go --resume --out first --steps 3 --kernels fp32=library,bf16=emulated
if grep -q avx512vl /proc/cpuinfo && test "$(kernels_of usual)" = "$(kernels_of second)"; then
  grep -q "kernels fp32=library,bf16=emulated instead of the run's" log || { cat log; exit 1; }
fi

fails 2 "--kernels: 'fast' is no kind of kernels" train -q --model tiny.json --data shards --steps 1 --kernels fast --device cpu
fails 2 "says twice how GEMMs of fp32" \
  train -q --model tiny.json --data shards --steps 1 --kernels fp32=library,fp32=blocks --device cpu

# The tools that read a model take the same choice.
for kernels in usual fp32=library auto; do
  evaluate -q --checkpoint whole --data shards --kernels $kernels --threads 1 --device cpu > $kernels.json
done
python3 - << 'PYTHON'
import json
losses = [json.load(open(f"{name}.json"))["loss_nats"] for name in ("usual", "fp32=library", "auto")]
assert max(losses) - min(losses) < 1e-5, losses
PYTHON
test -s cache/trainwright/kernels.json || ! grep -q avx512vl /proc/cpuinfo
echo "{\"text\": \"1 2\"}" > texts.jsonl
embed -q --checkpoint whole texts.jsonl -o vectors.npy --kernels fp32=library --threads 1 --device cpu
generate -q --checkpoint whole --prompt 12 --max-tokens 4 --temperature 0 --kernels bf16=emulated --threads 1 --device cpu > /dev/null
