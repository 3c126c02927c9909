# Functions of the tests of whole tools; run_cli_test.py reads them before each script.

# fails STATUS TEXT COMMAND...: the command ends with this status and says this on standard error, which stays in ./err.
fails() {
  local wanted=$1 text=$2 status=0
  shift 2
  "$@" > out 2> err || status=$?
  test "$status" = "$wanted" || { echo "$*: status $status, not $wanted"; cat err; exit 1; }
  grep -q -e "$text" err || { echo "$*: does not say '$text'"; cat err; exit 1; }
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
