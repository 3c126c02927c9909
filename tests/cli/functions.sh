# Functions of the tests of whole tools; run_cli_test.py reads them before each script.

# fails STATUS TEXT COMMAND...: the command ends with this status and says this on standard error, which stays in ./err.
fails() {
  local wanted=$1 text=$2 status=0
  shift 2
  "$@" > out 2> err || status=$?
  test "$status" = "$wanted" || { echo "$*: status $status, not $wanted"; cat err; exit 1; }
  grep -q -e "$text" err || { echo "$*: does not say '$text'"; cat err; exit 1; }
}
