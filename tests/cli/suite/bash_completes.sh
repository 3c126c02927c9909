# Asks bash itself, as the Tab key does.
set +e  # as in the shell where it happens
touch text.tok
mkdir folder
offer() {
  complete_words "$@"
  echo "${COMPREPLY[*]}"
}
offer pack --ov
offer pack --mode ''
offer pack --mode = be
offer pack --progress a
offer pack -o fold
offer pack --chunk ''
offer pack te
