# Ranks whose reader went away end with the status that SIGPIPE gives one process, and as silently.
set +o pipefail
python3 "$TRAINWRIGHT_SOURCE_DIR/tests/embedding/fixtures/cut/make_folder.py" model mean
printf 'amber basin cedar delta ember\n' > text.txt
for ranks in 1 2; do
  evaluate -q --checkpoint model --data text.txt --threads 1 --nproc $ranks 2> err | true
  echo "${PIPESTATUS[0]}"
  cat err
done
