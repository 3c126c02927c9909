# --help of every tool answers in milliseconds: bin/<tool> is linked without LibTorch. A lost engine is named.
for tool in $BUILT_TOOLS; do
  libraries=$(ldd "$(command -v "$tool")")
  [[ $libraries != *torch* ]] || { echo "$tool loads $libraries"; exit 1; }
done
[[ " $BUILT_TOOLS " == *" train "* ]] || exit 0
mkdir alone
cp "$(command -v train)" alone/
alone/train --help > help
grep -q -- --mixed-precision help
status=0
alone/train 2> error || status=$?
test "$status" = 4
grep -q 'libexec/trainwright/train-engine: start failed' error
