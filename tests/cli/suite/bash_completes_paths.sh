# What takes a path is completed as one: an argument that has a flag, too, a model, a run, a list of names.
set +e  # as in the shell where it happens
touch texts.jsonl
mkdir folder
offer() {
  complete_words "$@"
  echo "$1 $2: ${COMPREPLY[*]}"
}
offer embed te
offer embed --adapter fo
offer generate --adapter fo
offer evaluate --adapter fo
offer train --init fo
offer train --model te
offer train --branch-from fo
offer pretokenize --files-from te
