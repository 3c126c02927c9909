# Who has no real corpora is not told that tests of them have failed: 77 is a skipped test to CTest.
for script in "$TRAINWRIGHT_SOURCE_DIR"/tests/cli/data/*.sh; do
  status=0
  env -u TRAINWRIGHT_TEST_DATA python3 "$TRAINWRIGHT_SOURCE_DIR/tests/cli/run_cli_test.py" \
    --bin "$(dirname "$(command -v pack)")" "$script" > out || status=$?
  test "$status" = 77 || { echo "$script: status $status"; cat out; exit 1; }
  grep -q 'TRAINWRIGHT_TEST_DATA names no folder' out
done
