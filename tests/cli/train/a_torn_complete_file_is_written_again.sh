# complete.json that cannot be read is damage to --status, which says what helps; --resume writes it again and trains nothing.
seq 100 > numbers
pretokenize -q numbers | pack -q --chunk 64 -o shards/
train -q --model ten-nano --data shards --steps 2 --batch 1 --seq 16 --threads 1 --out run
cp run/complete.json whole
sha256sum run/latest/* run/metrics.jsonl > before
for torn in '{"schema":' '' '{"schema":"trainwright.complete/1","steps":9,"reason":"complete","checkpoint":"checkpoints/step-00000002"}'; do
  printf '%s' "$torn" > run/complete.json
  status=0
  train -q --status run > told || status=$?
  test "$status" = 3 && grep -q damaged told
  train -q --resume --out run > /dev/null
  cmp run/complete.json whole
  sha256sum --quiet -c before
  train -q --status run > told
done
printf '{' > run/complete.json
train -q --status run > told && exit 1
grep -q 'run/complete.json: is not what train writes for a complete run; train --resume writes it again' told
