# An unset variable of a script gives an empty value, which must not do the same as leaving the option out.
python3 - "$TRAINWRIGHT_SOURCE_DIR/tests/cli/cli.json" $BUILT_TOOLS > cases <<'PYTHON'
import json
import sys
for tool in json.load(open(sys.argv[1])):
    for option in tool["options"]:
        text = "value" in option and option["value"] not in ("N", "X") and not option.get("choices") and not option.get("constraint")
        if tool["tool"] in sys.argv[2:] and text and (tool["tool"], option.get("key")) != ("generate", "prompt"):
            print(tool["tool"], "--" + option["long"][0] if option.get("long") else option["positional"])
PYTHON
test "$(wc -l < cases)" -gt 40 || ! command -v bench
while read -r tool option; do
  name=$option
  if [ "${option#--}" = "$option" ]; then option=''; else option=$option=; fi
  status=0
  "$tool" "$option" > out 2> err < /dev/null || status=$?
  test "$status" = 2 || { echo "$tool $name: status $status"; cat err; exit 1; }
  test ! -s out
  grep -q "^$tool: error: $name: is empty" err || { cat err; exit 1; }
done < cases
