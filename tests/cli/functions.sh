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
