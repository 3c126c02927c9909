# Functions of the tests of whole tools; run_cli_test.py reads them before each script.

# fails STATUS TEXT COMMAND...: the command ends with this status and says this on standard error, which stays in ./err.
fails() {
  local wanted=$1 text=$2 status=0
  shift 2
  "$@" > out 2> err || status=$?
  test "$status" = "$wanted" || { echo "$*: status $status, not $wanted"; cat err; exit 1; }
  grep -q -e "$text" err || { echo "$*: does not say '$text'"; cat err; exit 1; }
}

# need_real_data: sets data to the folder of real corpora; a test that has none is skipped.
need_real_data() {
  data=${TRAINWRIGHT_TEST_DATA:-}
  [[ $data ]] || { echo 'TRAINWRIGHT_TEST_DATA names no folder of real data'; exit 77; }
}

# overrides NOTICE WANTED-LINE UNWANTED-KEY [VARIABLE=VALUE]... COMMAND...: of two options that exclude each other the
# configuration has this one, and a notice tells why.
overrides() {
  local notice=$1 wanted=$2 unwanted=$3
  shift 3
  env "$@" --print-config > out 2> err || { echo "$*"; cat err; exit 1; }
  grep -qx -e "$wanted" out || { echo "$*: not $wanted"; cat out; exit 1; }
  ! grep -e "^$unwanted: [^f]" out || { echo "$*: has $unwanted, too"; exit 1; }
  grep -qF -e "$notice" err || { echo "$*: does not tell '$notice'"; cat err; exit 1; }
}

# explained OPTION ARGUMENT...: the value of an option of a run of one step, and who gave it; errors stay in ./err.
explained() {
  local option=$1
  shift
  train -q --explain --steps 1 --threads 1 "$@" 2> err | awk -v option="$option" '$1 == option { print $2, $3 }'
}

# expect_explained WANTED OPTION ARGUMENT...: that is what `explained` says.
expect_explained() {
  local wanted=$1 got
  shift
  got=$(explained "$@") || true
  test "$got" = "$wanted" || { echo "$*: '$got', not '$wanted'"; cat err; exit 1; }
}

# explain_fails TEXT ARGUMENT...: such a run is a wrong use, and this is said of it.
explain_fails() {
  fails 2 "$1" train -q --explain --steps 1 --threads 1 "${@:2}"
}

# grit_sets: shards of questions with their answers, pairs/ to find texts by and talks/ to write them from.
grit_sets() {
  python3 - <<'PYTHON'
import json
with open("pairs.jsonl", "w") as pairs, open("talks.jsonl", "w") as talks:
    for i in range(48):
        question, answer = f"what is {i} and {i * 7 % 48}", f"it is {i}, then comes {i * 7 % 48}" + "!" * (i % 20)
        record = {"query": ["Find", question], "pos": [answer], "neg": [f"it is {i + 1}, then comes {i}"]}
        pairs.write(json.dumps(record) + "\n")
        talks.write(json.dumps({"text": [question, answer]}) + "\n")
PYTHON
  pretokenize -q --records contrastive pairs.jsonl | pack -q --chunk 512 -o pairs/
  pretokenize -q --records sft --template grit talks.jsonl | pack -q --chunk 512 -o talks/
}

# large_tensor FILE SEED: a safetensors file of one bf16 tensor of half a GiB, with holes. All the rows that a predictor is tried on have
# weights, whose columns differ in scale, and between them are zeros.
large_tensor() {
  python3 - "$@" << 'PYTHON'
import json, struct, sys

rows, columns, size, seed = 2048, 131072, 1 << 29, int(sys.argv[2])
header = json.dumps({"w": {"dtype": "BF16", "shape": [rows, columns], "data_offsets": [0, size]}}).encode()
with open(sys.argv[1], "wb") as file:
    file.write(struct.pack("<Q", len(header)) + header)
    begin = file.tell()
    exponents = [100 + i * i % 23 for i in range(columns)]
    for row in range(0, rows, 64):
        file.seek(begin + row * columns * 2)
        mantissas = range(97 * row + seed, 97 * row + seed + columns)
        file.write(struct.pack(f"<{columns}H", *(e << 7 | 37 * m & 127 for e, m in zip(exponents, mantissas))))
    file.truncate(begin + size)
PYTHON
}

# within_256_mib TOOL ARGUMENT...: runs it, and fails where it took as much memory; under a sanitizer, which holds freed memory back,
# twice as much.
within_256_mib() {
  local limit=256
  # No pipe: grep -q ends before ldd does, which the shell takes for a failure.
  if [[ $(ldd "$(command -v "$1")") == *lib?san* ]]; then limit=512; fi
  python3 -c 'import resource, subprocess, sys
subprocess.run(sys.argv[2:], check=True)
took = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
if took >= int(sys.argv[1]): sys.exit(f"{sys.argv[2:]}: {took} MiB")' "$limit" "$@"
}

# ranks_differ OPTION OF-RANK-1 OF-RANK-0 COMMAND...: the ranks of a world of two are refused, by the option, as rank 1 has another
# value than rank 0. Neither needs a model for that.
ranks_differ() {
  local option=$1 one=$2 zero=$3 status=0 pid
  local -x WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT TRAINWRIGHT_THREADS=1 TRAINWRIGHT_DIST_TIMEOUT=20
  shift 3
  MASTER_PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  RANK=0 "$@" $zero > out0 2> err0 &
  pid=$!
  RANK=1 "$@" $one > out1 2> err1 || status=$?
  test "$status" = 2 || { echo "$*: rank 1 ends with $status"; cat err0 err1; exit 1; }
  status=0
  wait $pid || status=$?
  test "$status" = 4 || { echo "$*: rank 0 ends with $status"; cat err0 err1; exit 1; }
  grep -q -e "rank 1: $option is " err0 || { echo "$*: does not name $option"; cat err0; exit 1; }
}

# complete_words TOOL WORD...: sets COMPREPLY to what the Tab key offers in bash for the last word. Needs set +e, as in the shell where it
# happens.
complete_words() {
  source "$TRAINWRIGHT_SOURCE_DIR/completions/bash/$1"
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  "$(complete -p "$1" | sed 's/.*-F \([^ ]*\).*/\1/')"
}
