# A wrong flag, value, key or variable is status 2, names itself, and suggests what was meant.
fails_with_2() {
  local status=0
  "$@" > out 2> err < /dev/null || status=$?
  test "$status" = 2 || { echo "$*: status $status"; cat err; exit 1; }
  test ! -s out
  grep -q "^$tool: error: " err
}
echo 'progres: never' > unknown.yaml
echo 'progress: [auto, never]' > list.yaml
for tool in $BUILT_TOOLS; do
  fails_with_2 "$tool" --progres never
  grep -q "^$tool: hint: did you mean --progress?" err
  fails_with_2 "$tool" --progress sometimes
  grep -q "'sometimes' is not one of auto, always, never" err
  fails_with_2 env TRAINWRIGHT_PROGRESS=sometimes "$tool"
  grep -q 'TRAINWRIGHT_PROGRESS' err
  fails_with_2 "$tool" --config unknown.yaml
  grep -q "unknown key 'progres' (line 1)" err
  grep -q "did you mean 'progress'?" err
  fails_with_2 "$tool" --config list.yaml
  fails_with_2 "$tool" --progress
done
