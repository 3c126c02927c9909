# Weights begin with the deviation that config.json says; dropout of a config.json is told of as not applied. Checkpoints have
# both again, and what reads them applies neither.
seq 2000 > text
pretokenize -q text | pack -q --chunk 256 -o shards/
config() { # config NAME FIELDS: a file of a small model with more fields
  cat > "$1.json" << JSON
{"model_type": "llama", "vocab_size": 258, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1,
 "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 256, "hidden_act": "silu"$2}
JSON
}
go() {
  train --data shards --seq 64 --batch 2 --accum 1 --threads 1 "$@" > /dev/null 2> log || { cat log; exit 1; }
}
config usual ''
config other ', "initializer_range": 0.006'
config dropped ', "initializer_range": 0.006, "attention_dropout": 0.1'
for name in usual other dropped; do
  go --model $name.json --steps 1 --out $name
  if test $name != dropped && grep -q dropout log; then cat log; exit 1; fi
done
grep -q 'warning: dropped.json: dropout (attention_dropout 0.1, as transformers reads it) is not applied' log || { cat log; exit 1; }
if cmp -s usual/latest/model.safetensors other/latest/model.safetensors; then echo 'it begins with the same weights'; exit 1; fi
cmp other/latest/model.safetensors dropped/latest/model.safetensors
go --init dropped --steps 1 --out tuned
grep -q 'config.json: dropout (attention_dropout 0.1,' log || { cat log; exit 1; }
for run in dropped tuned; do
  grep -q '"initializer_range": 0.006,' $run/latest/config.json
  grep -q '"attention_dropout": 0.1,' $run/latest/config.json
done
grep -q '"initializer_range": 0.02,' usual/latest/config.json
grep -q '"attention_dropout": 0.0,' usual/latest/config.json
for run in other dropped; do
  evaluate -q --checkpoint $run --data shards --threads 1 | sed 's/"checkpoint".*//' > $run.loss
done
grep -q loss_nats other.loss
cmp other.loss dropped.loss

# A run that an older version began lacks them in its checkpoint, and is the same run.
go --model dropped.json --steps 2 --save-every 1 --keep 2 --out old
rm -r old/checkpoints/step-00000002
ln -sfn checkpoints/step-00000001 old/latest
python3 - << 'PYTHON'
import hashlib, pathlib
folder = pathlib.Path("old/latest")
config = (folder / "config.json").read_bytes()
older = config.replace(b"0.006", b"0.02 ").replace(b'"attention_dropout": 0.1', b'"attention_dropout": 0.0')
assert older != config and len(older) == len(config)
(folder / "config.json").write_bytes(older)
metadata = (folder / "metadata.json").read_text()
known = hashlib.sha256(config).hexdigest()
assert known in metadata
(folder / "metadata.json").write_text(metadata.replace(known, hashlib.sha256(older).hexdigest()))
PYTHON
go --resume --out old --model dropped.json --steps 2
