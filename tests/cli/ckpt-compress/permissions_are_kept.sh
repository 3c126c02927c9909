# What nobody else may read stays so, and what others may read does, whatever the umask.
original=$TRAINWRIGHT_SOURCE_DIR/examples/data/tiny-checkpoint/model.safetensors
modes_of() { (cd "$1" && find . -printf '%P %m\n' | sort); }
mode_of() { stat -c %a "$1"; }
for mask in 000 022 077; do
  umask $mask
  for mode in 600 640 444 666; do
    cp "$original" plain.safetensors
    chmod $mode plain.safetensors
    ckpt-compress -q -f plain.safetensors
    test "$(mode_of plain.twc.safetensors)" = $mode
    ckpt-compress -q -f --to stream plain.twc.safetensors
    test "$(mode_of plain.safetensors.twc)" = $mode
    ckpt-compress -q -f -d plain.twc.safetensors -o again
    test "$(mode_of again)" = $mode
    ckpt-compress -q -f -d --keep-going plain.twc.safetensors -o again
    test "$(mode_of again)" = $mode
    ckpt-compress -q -f -d --tensor model.norm.weight plain.twc.safetensors -o part
    test "$(mode_of part)" = $mode
    rm -f plain.* again part
  done
done
# A result of standard input has nothing to take them from; bits that run a program as its owner are left out.
umask 027
ckpt-compress -q < "$original" > stream
ckpt-compress -q - -o piped < "$original"
test "$(mode_of piped)" = 640
cp "$original" program
chmod 4755 program
ckpt-compress -q program -o less
test "$(mode_of less)" = 755

umask 022
mkdir -p ckpt/closed/inner ckpt/open
cp "$original" ckpt/model.safetensors
cp "$original" ckpt/closed/inner/model.safetensors
echo '{}' > ckpt/config.json
echo secret > ckpt/open/key
chmod 600 ckpt/model.safetensors ckpt/open/key
chmod 640 ckpt/config.json ckpt/closed/inner/model.safetensors
chmod 500 ckpt/closed
chmod 2770 ckpt/closed/inner
chmod 777 ckpt/open
chmod 750 ckpt
ckpt-compress -q ckpt
test "$(modes_of ckpt.twc | sed 's/\.twc//')" = "$(modes_of ckpt)"
ckpt-compress -q -d ckpt.twc -o again
test "$(modes_of again)" = "$(modes_of ckpt)"
diff -r ckpt again
chmod -R u+w .
