# -h, --help and --version answer on standard output with status 0, whatever else is wrong.
for tool in $BUILT_TOOLS; do
  for flag in -h --help --version; do
    "$tool" --no-such-flag "$flag" > out 2> err
    test ! -s err
    grep -q "$tool" out
  done
  "$tool" --version > out
  head -n 1 out | grep -qxE "$tool \(Trainwright\) [0-9]+\.[0-9]+\.[0-9]+"
  grep -q '^built with: ' out
  "$tool" -h > out
  grep -q '^usage: ' out
  "$tool" --help > out
  grep -qx 'EXIT STATUS' out
done

# It fits 80 columns, but for words and quoted parts of commands that alone are longer.
for tool in $BUILT_TOOLS; do
  for flag in -h --help; do
    "$tool" $flag | python3 -c '
import re, sys
section = ""
for line in sys.stdin.read().splitlines():
    if line and line[0] != " ":
        section = line
    words = re.findall(r"[^ ]+", line.removesuffix(" \\"))
    quoted = section == "EXAMPLES" and re.search("[\x22\x27].* ", line)
    assert len(line) <= 80 or len(words) == 1 or quoted, line'
  done
done
