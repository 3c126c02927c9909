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
