# Filters die of SIGPIPE as every filter does, also under a parent that ignores the signal.
set +o pipefail
yes 'to be or not to be, that is the question' | head -c 30000000 > text
pretokenize -q text > tokens
status_of_first() { echo "${PIPESTATUS[0]}"; }
pretokenize -q text | head -c 1 > one; status_of_first
pretokenize -q text --to jsonl | head -c 1 > one; status_of_first
pack -q --level 1 --mode none tokens | head -c 1 > one; status_of_first
head -c 4000000 tokens > values
python3 -c 'import sys; h = b"{\"a\":{\"dtype\":\"U8\",\"shape\":[4000000],\"data_offsets\":[0,4000000]}}"; sys.stdout.buffer.write(len(h).to_bytes(8, "little") + h)' |
  cat - values > model
ckpt-compress -q model -o - | head -c 1 > one; status_of_first
ckpt-compress -q model -o small
ckpt-compress -q -d small -o - | head -c 1 > one; status_of_first
bash -c 'trap "" PIPE; pretokenize -q text | head -c 1 > one; echo "${PIPESTATUS[0]}"'
