# --print-config of every tool reads back to itself, needs no required option, and lists every option.
for tool in $BUILT_TOOLS; do
  "$tool" --print-config > a.yaml
  "$tool" --config a.yaml --print-config | cmp a.yaml -
  "$tool" --config a.yaml --progress never --print-config > b.yaml
  grep -q '^progress: "never"$' b.yaml
  TRAINWRIGHT_PROGRESS=always "$tool" --config b.yaml --print-config | grep -q '^progress: "always"$'
  keys=$(clidoc json "$tool" | grep -c '"key":')
  test "$(grep -c ': ' <(tail -n +2 a.yaml))" = "$keys"
done
