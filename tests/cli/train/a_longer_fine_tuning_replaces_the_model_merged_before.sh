# scripts/finetune.sh with more epochs: the merged model is that of the run as it is, and no earlier one.
finetune=$TRAINWRIGHT_SOURCE_DIR/scripts/finetune.sh
python3 -c 'print("abcabd" * 400, end="")' > text.txt
pretokenize -q --format file text.txt | pack -q --chunk 256 -o shards/
train -q --batch 1 --seq 64 --threads 1 --model ten-nano --steps 1 --out began > /dev/null
cp -r "$(readlink -f began/latest)" model
for i in 0 1 2 3 4 5 6 7; do echo "{\"prompt\": \"$i?\", \"response\": \"$i!$i!$i!\"}"; done > talks.jsonl
tune() {
  "$finetune" --out tuned --epochs "$1" --lora 2 --template plain model talks.jsonl -- --threads 1 --batch 1 --schedule constant \
    > told 2>&1 || { cat told; exit 1; }
}
tune 1
before=$(sha256sum < tuned/model/model.safetensors)
tune 2
test "$(sha256sum < tuned/model/model.safetensors)" != "$before"
train -q --merge tuned/run --out merged > /dev/null
cmp merged/model.safetensors tuned/model/model.safetensors
test ! -e tuned/model.new
