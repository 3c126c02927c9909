# What takes a path is completed as one: an argument that has a flag, too, a model, a run, a list of names.
set +e  # as in the shell where it happens
touch texts.jsonl
mkdir folder
complete_words() {
  source "$TRAINWRIGHT_SOURCE_DIR/completions/bash/$1"
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  "$(complete -p "$1" | sed 's/.*-F \([^ ]*\).*/\1/')"
  echo "$1 $2: ${COMPREPLY[*]}"
}
complete_words embed te
complete_words embed --adapter fo
complete_words generate --adapter fo
complete_words evaluate --adapter fo
complete_words train --init fo
complete_words train --model te
complete_words train --branch-from fo
complete_words pretokenize --files-from te
