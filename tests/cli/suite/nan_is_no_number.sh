# NaN passes every comparison with a bound: no option takes it for a number.
python3 - "$TRAINWRIGHT_SOURCE_DIR/tests/cli/cli.json" $BUILT_TOOLS > cases <<'PYTHON'
import json
import sys
for tool in json.load(open(sys.argv[1])):
    for option in tool["options"]:
        if tool["tool"] in sys.argv[2:] and option.get("value") in ("X", "S"):
            print(tool["tool"], "--" + option["long"][0])
PYTHON
test "$(wc -l < cases)" -gt 0 || ! command -v bench
refuses() {
  local status=0
  "$@" > out 2> err < /dev/null || status=$?
  test "$status" = 2 || { echo "$*: status $status"; cat err; exit 1; }
  test ! -s out
  grep -q "^$tool: error: $option: '$value' is not " err || { cat err; exit 1; }
}
while read -r tool option; do
  for value in nan -nan NaN; do
    refuses "$tool" "$option=$value" --print-config  # which is answered without LibTorch
  done
  value=nan
  refuses "$tool" "$option=$value"
done < cases
