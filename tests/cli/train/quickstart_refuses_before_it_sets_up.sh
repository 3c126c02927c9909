# scripts/quickstart.sh: what it cannot do is said at once, not after set-up and build.
quickstart=$TRAINWRIGHT_SOURCE_DIR/scripts/quickstart.sh
for tokens in abc 0 -5 1e6 600K; do
  fails 1 "'$tokens' is no number of tokens" timeout 20 "$quickstart" --tokens "$tokens" "$PWD/work"
done
test ! -e work
python3 -c 'print("abcabd" * 400, end="")' > text.txt
pretokenize -q --format file text.txt | pack -q --chunk 256 -o shards/
train -q --batch 1 --accum 1 --seq 32 --threads 1 --model ten-nano --tokens 64 --out work/runs/quickstart > /dev/null
fails 1 'another number of tokens than 128: "length_rule": "tokens 64"' timeout 20 "$quickstart" --tokens 128 "$PWD/work"
grep -q 'another DIR' err
mkdir -p own/data
fails 1 'own/data is there already' timeout 20 "$quickstart" "$PWD/own"
