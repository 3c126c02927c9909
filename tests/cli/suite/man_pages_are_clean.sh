# No warning from groff or mandoc, whichever is there, on any man page.
cd "$TRAINWRIGHT_SOURCE_DIR/man"
test -f pretokenize.1 -a -f pack.1
command -v groff > /dev/null || command -v mandoc > /dev/null || { echo "neither groff nor mandoc is installed"; exit 1; }
for page in *.[1-8]; do
  if command -v groff > /dev/null; then
    warnings=$(groff -ww -z -mandoc -Tutf8 "$page" 2>&1)
    test -z "$warnings" || { echo "$page: $warnings"; exit 1; }
  fi
  if command -v mandoc > /dev/null; then mandoc -T lint -W warning "$page"; fi
done
