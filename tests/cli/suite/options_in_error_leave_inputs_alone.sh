# --summary replaces no input where another option is in error either, whatever is found first.
echo 'One line.' > text.txt
before=$(md5sum < text.txt)
kept() {  # COMMAND...: ends with 2 and leaves the text alone
  fails 2 error: "$@"
  test "$(md5sum < text.txt)" = "$before" || { echo "$*: replaced its input"; exit 1; }
}
for wrong in '--threads 9999' '--format foo' '--slice=' '--progres never' '--config=' '--files-from'; do
  kept pretokenize text.txt --summary text.txt -o x.tok $wrong
done
kept env TRAINWRIGHT_FILE=text.txt pretokenize --summary text.txt --threads 9999
# Found by the tool itself, before it has said which inputs the list names.
echo text.txt > list
kept pretokenize --files-from list --summary text.txt -o x.tok --format lines --key text
test ! -e x.tok
