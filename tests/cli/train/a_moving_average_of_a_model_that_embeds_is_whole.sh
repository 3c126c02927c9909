# A checkpoint of --ema has folders in its folder average where the model embeds texts: it is resumed, copied, branched
# from, opened and averaged as any other.
grit_sets
cat > tiny.json << 'END'
{"model_type": "llama", "vocab_size": 512, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1,
 "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 256, "rms_norm_eps": 1e-5,
 "rope_theta": 10000, "tie_word_embeddings": false, "hidden_act": "silu"}
END
options=(-q --progress never --objective grit --mode embedding --data pairs --query-max-len 64 --passage-max-len 96
         --batch 4 --accum 2 --threads 1 --ema 0.9)
train "${options[@]}" --model tiny.json --projection 8 --steps 4 --save-every 2 --out whole > /dev/null
average=whole/checkpoints/step-00000004/average
test -e $average/1_Pooling/config.json && test -e $average/2_Dense/model.safetensors
train -q --status whole > /dev/null
train "${options[@]}" --model tiny.json --projection 8 --steps 4 --save-every 2 --max-minutes 0.0000001 --out parts > /dev/null
train -q --progress never --resume --data pairs --out parts > /dev/null
for file in model.safetensors average/model.safetensors average/2_Dense/model.safetensors average/1_Pooling/config.json; do
  cmp {whole,parts}/checkpoints/step-00000004/$file
done

# Its copies are those of the checkpoint, and a run goes on from them.
for compress in '' --copy-compress; do
  train "${options[@]}" --model tiny.json --projection 8 --steps 4 --copy-to copies"$compress" $compress --out copied > /dev/null
  cp -r copied before && rm -r copied
  train -q --progress never --resume --data pairs --out copied --copy-to copies"$compress" $compress > /dev/null
  diff -r {before,copied}/checkpoints/step-00000004
  rm -r before copied
done

# Every tool opens either.
head -n 2 pairs.jsonl | python3 -c '
import json, sys
for line in sys.stdin: print(json.loads(line)["pos"][0])' > texts
for model in whole $average; do
  embed -q --checkpoint $model --threads 1 texts > vectors
  test -s vectors
done
train "${options[@]}" --branch-from whole/checkpoints/step-00000004 --steps 6 --out branch > /dev/null
for model in whole $average; do
  train "${options[@]}" --init $model --projection 8 --steps 1 --out "from_$(basename $model)" > /dev/null
done
train -q --average whole --average $average --out mean > /dev/null
embed -q --checkpoint mean --threads 1 texts > vectors

# So it is of an adapter.
train "${options[@]}" --init whole --projection 8 --lora 2 --steps 2 --out adapter > /dev/null
test -e adapter/latest/average/2_Dense/config.json
train -q --status adapter > /dev/null
train -q --merge adapter/latest/average --out merged > /dev/null
embed -q --checkpoint merged --threads 1 texts > vectors
