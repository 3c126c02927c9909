# Of a file that is no safetensors file the hint says what is taken, whatever the file is called and however it is read.
echo '{"text": "to be or not to be"}' > own.jsonl
cp own.jsonl own.safetensors
for how in own.jsonl 'own.jsonl -o small' own.safetensors '- -o small'; do
  fails 3 'is not a safetensors file' ckpt-compress $how < own.jsonl
  grep -q 'hint: ckpt-compress takes safetensors files' err || { echo "$how"; cat err; exit 1; }
done
test "$(echo *)" = 'err out own.jsonl own.safetensors'
