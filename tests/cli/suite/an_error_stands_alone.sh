# What a tool says of its work before the input is found sound is not said where it is not: an error and its hints stand alone.
has() { [[ " $BUILT_TOOLS " == *" $1 "* ]]; }
# alone TOOL ARGUMENT...: fails, and says nothing but errors and hints.
alone() {
  local status=0
  "$@" > out 2> err < /dev/null || status=$?
  test "$status" != 0 || { echo "$*: does not fail"; exit 1; }
  grep -q "^$1: error: " err || { echo "$*: no error"; cat err; exit 1; }
  if grep -vE "^$1: (error|hint): " err; then echo "$*: says more than its error"; exit 1; fi
}
# A new machine: what is measured of its kernels is told, too.
unset TRAINWRIGHT_KERNELS
export XDG_CACHE_HOME=$PWD/cache
echo '{"text": "one"}' > own.jsonl
echo text > text.txt
mkdir empty

alone pretokenize missing.txt -o out.tok
alone pretokenize --key body own.jsonl -o out.tok
alone pretokenize --max-document 0 text.txt -o out.tok
alone pretokenize --holdout 2 text.txt -o out.tok
alone pretokenize empty -o out.tok
alone pack missing.tok -o shards/
alone pack text.txt -o shards/
alone ckpt-compress missing.safetensors -o out.tws
alone ckpt-compress text.txt -o out.tws

has train || exit 0
alone train --data missing --device cpu
alone train --data own.jsonl --device cpu
rm -rf shards
seq 2000 > numbers
pretokenize -q numbers | pack -q --chunk 512 -o shards/
alone train --model missing.json --device cpu
alone train --model nothing --device cpu
alone train --init missing --device cpu
for command in 'evaluate --data shards' 'generate --prompt a' 'embed own.jsonl'; do
  rm -rf cache
  alone $command --checkpoint missing --device cpu
done
alone gpu-probe --quick --disk-size 0 --device cpu --model missing.json
train -q --steps 1 --batch 1 --seq 64 --device cpu --out run > /dev/null
for command in 'evaluate --data missing' 'generate --input missing'; do
  rm -rf cache
  alone $command --checkpoint run --device cpu
done
