# A body whose head is missing, as AutoModel and sentence-transformers save models with a head of their own, serves all that
# computes vectors with the bits of the whole model; what needs logits says what it is.
grit_sets
cat > tiny.json << 'END'
{"model_type": "llama", "vocab_size": 258, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
 "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 256, "rms_norm_eps": 1e-5,
 "rope_theta": 10000, "tie_word_embeddings": false, "hidden_act": "silu"}
END
train -q --model tiny.json --data talks --steps 1 --batch 1 --seq 64 --threads 1 --save-model-only --out run > /dev/null
mkdir whole body
cp run/latest/config.json run/latest/tokenizer* run/latest/model.safetensors whole
cp whole/config.json whole/tokenizer* body
cat > heads.py << 'END'
import json, sys
def read(folder):
    data = open(folder + "/model.safetensors", "rb").read()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return {name: (entry, data[8 + size:][slice(*entry.pop("data_offsets"))]) for name, entry in header.items()}
def write(folder, tensors):
    header, body = {}, b""
    for name, (entry, data) in tensors.items():
        header[name] = dict(entry, data_offsets=[len(body), len(body) + len(data)])
        body += data
    text = json.dumps(header).encode()
    open(folder + "/model.safetensors", "wb").write(len(text).to_bytes(8, "little") + text + body)
if sys.argv[1] == "strip":  # FROM TO: the body alone, by its own names
    write(sys.argv[3], {name[len("model."):]: tensor for name, tensor in read(sys.argv[2]).items() if name != "lm_head.weight"})
else:  # same WHOLE BODY: that is all they differ in
    whole, body = read(sys.argv[2]), read(sys.argv[3])
    assert set(whole) - set(body) == {"lm_head.weight"} and not set(body) - set(whole), set(whole) ^ set(body)
    assert all(whole[name] == body[name] for name in body)
END
python3 heads.py strip whole body

printf 'one text\nanother one\n' > lines.txt
printf '{"text1": "one two", "text2": "one three", "score": 2}\n{"text1": "four", "text2": "five", "score": 1}\n' > sts.jsonl
printf '{"text1": "six", "text2": "seven", "score": 3}\n' >> sts.jsonl
printf '{"_id": "a", "text": "one text"}\n{"_id": "b", "text": "two texts"}\n' > corpus.jsonl
printf '{"_id": "q", "text": "one"}\n' > queries.jsonl
printf 'q 0 b 1\n' > qrels
train=(-q --objective grit --mode embedding --data pairs --batch 4 --threads 1 --projection 8
  --schedule constant --warmup 0)
for model in whole body; do
  embed -q --checkpoint $model lines.txt -o $model.plain.jsonl --threads 1
  embed -q --checkpoint $model lines.txt -o $model.bf16.jsonl --threads 1 --mixed-precision bf16
  embed -q --checkpoint $model --mine-negatives pairs.jsonl --negatives 2 -o $model.mined.jsonl --threads 1
  scores() { evaluate -q --checkpoint $model --threads 1 "$@" | sed 's/"checkpoint".*//'; }
  scores --metric sts --data sts.jsonl > $model.sts
  scores --metric retrieval --corpus corpus.jsonl --queries queries.jsonl --qrels qrels > $model.retrieval
  scores --data pairs > $model.loss
  train "${train[@]}" --init $model --steps 3 --out $model.trained > /dev/null
  train "${train[@]}" --init $model --steps 1 --out $model.resumed > /dev/null
  train -q --resume --out $model.resumed --steps 3 > /dev/null
  train "${train[@]}" --init $model --steps 1 --lora 2 --out $model.adapter > /dev/null
  train -q --merge $model.adapter --out $model.merged
  train -q --average $model.merged --average $model.merged --out $model.mean
  embed -q --checkpoint $model.trained lines.txt -o $model.trained.jsonl --threads 1
  embed -q --checkpoint $model.adapter lines.txt -o $model.adapter.jsonl --threads 1
done
for name in {plain,bf16,mined,trained,adapter}.jsonl sts retrieval loss; do cmp whole.$name body.$name; done
grep -q spearman body.sts && grep -q ndcg body.retrieval && grep -q loss_nats body.loss
for name in trained/latest resumed/latest merged mean; do python3 heads.py same whole.$name body.$name; done
cmp body.trained/latest/model.safetensors body.resumed/latest/model.safetensors
fails 3 "otherwise than the first one" train -q --average whole --average body --out bad

fails 3 "is a body without a head" generate -q --checkpoint body --prompt one --max-tokens 1
fails 3 "is a body without a head" evaluate -q --checkpoint body --data talks --threads 1
fails 3 "is a body without a head" train -q --init body --data talks --steps 1 --batch 1 --seq 64 --threads 1 --out bad
fails 3 "is a body without a head" train -q --objective grit --mode unified --init body --data pairs --data talks --steps 1 \
  --batch 4 --threads 1 --out worse
