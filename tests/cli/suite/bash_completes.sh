# Asks bash itself, as the Tab key does.
set +e  # as in the shell where it happens
source "$TRAINWRIGHT_SOURCE_DIR/completions/bash/pack"
touch text.tok
mkdir folder
complete_words() {
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  "$(complete -p pack | sed 's/.*-F \([^ ]*\).*/\1/')"
  echo "${COMPREPLY[*]}"
}
complete_words pack --ov
complete_words pack --mode ''
complete_words pack --mode = be
complete_words pack --progress a
complete_words pack -o fold
complete_words pack --chunk ''
complete_words pack te
