# Averages and merged models know whether texts of their data have BOS and EOS, and how conversations are written.
python3 - <<'PYTHON'
import json
open("texts.txt", "w").write("\n\n".join(f"paragraph {i} of a text" for i in range(40)))
with open("talks.jsonl", "w") as talks:
    for i in range(16):
        talks.write(json.dumps({"messages": [{"role": "user", "content": f"{i}?"}, {"role": "assistant", "content": f"{i}!"}]}) + "\n")
PYTHON
tokenizer="$TRAINWRIGHT_SOURCE_DIR/examples/data/mistral-v1.model"
pretokenize -q --format paragraphs --tokenizer "$tokenizer" --bos --eos texts.txt > both.tokens
pretokenize -q --format paragraphs --tokenizer "$tokenizer" --bos --no-eos texts.txt > bos.tokens
pretokenize -q --records sft --template alpaca --tokenizer "$tokenizer" talks.jsonl > talks.tokens
pretokenize -q --records sft --template llama2 --tokenizer "$tokenizer" talks.jsonl > others.tokens
for set in both bos talks others; do pack -q --chunk 64 -o $set/ < $set.tokens; done
options=(-q --progress never --batch 1 --seq 64 --steps 2 --save-every 1 --keep 0 --threads 1)
train "${options[@]}" --data both --model llama-1m --ema 0.5 --out run > /dev/null
train "${options[@]}" --data both --init run --lora 2 --ema 0.5 --out adapter > /dev/null
train "${options[@]}" --data bos --init run --out more > /dev/null
train -q --average run/checkpoints/step-00000001 --average run/latest/average --out mean > /dev/null
train -q --average mean --average more --out differ > /dev/null
train -q --merge adapter --out merged > /dev/null
train -q --merge adapter/latest/average --out merged-average > /dev/null

counted() { evaluate -q --format paragraphs --data texts.txt --threads 1 --checkpoint "$@" | python3 -c 'import json, sys; print(json.load(sys.stdin)["tokens"])'; }
both=$(counted run --bos --eos) bos=$(counted run --bos --no-eos) none=$(counted run --no-bos --no-eos)
test "$none" -lt "$bos" && test "$bos" -lt "$both"
for model in run run/latest/average adapter adapter/latest/average mean merged merged-average; do
  test "$(counted $model)" = "$both" || { echo "$model: not as its data"; exit 1; }
done
# Where records differ, what all say is taken.
test "$(counted more)" = "$bos"
test "$(counted differ)" = "$bos"
# One that says nothing leaves it to the others, and the base of an adapter that says nothing speaks for it.
cp -r "$(readlink -f more/latest)" silent && rm silent/metadata.json
train -q --average silent --average run --out mean-of-silent > /dev/null
test "$(counted mean-of-silent)" = "$both"
cp -r "$(readlink -f adapter/latest)" foreign && rm foreign/metadata.json
train -q --merge foreign --init more --out merged-foreign > /dev/null
test "$(counted merged-foreign)" = "$bos"
# So it is of a mixture.
train "${options[@]}" --data both --data bos --init run --out mixed > /dev/null
test "$(counted mixed)" = "$bos"

train "${options[@]}" --data talks --objective sft --init run --ema 0.5 --out tuned > /dev/null
train "${options[@]}" --data talks --objective sft --init run --lora 2 --ema 0.5 --out tuned-adapter > /dev/null
train "${options[@]}" --data others --objective sft --init run --out other > /dev/null
train -q --average tuned/checkpoints/step-00000001 --average tuned/latest/average --out tuned-mean > /dev/null
train -q --merge tuned-adapter --out tuned-merged > /dev/null
train -q --merge tuned-adapter/latest/average --out tuned-merged-average > /dev/null
said() { printf 'One?' | generate -q --threads 1 --chat --temperature 0 --max-tokens 4 --format jsonl --checkpoint "$@"; }
for model in tuned tuned/latest/average tuned-adapter/latest/average tuned-mean tuned-merged tuned-merged-average; do
  said $model > by-record
  said $model --template alpaca > by-name
  cmp by-record by-name
done
train -q --average tuned --average other --out tuned-otherwise > /dev/null
fails 2 "how a conversation is written" said tuned-otherwise
