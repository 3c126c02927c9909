# Shared by the scripts in this folder; sourced, not run.
# shellcheck shell=bash

shopt -s inherit_errexit

# Set by the script that sources this file: the name shown before its messages.
: "${script_name:=$(basename "$0" .sh)}"

torch_version=2.11.0
arrow_version=26.0.1

if [[ -t 1 && -z ${NO_COLOR:-} && ${TERM:-dumb} != dumb ]]; then
  bold=$'\e[1m' dim=$'\e[2m' green=$'\e[32m' reset=$'\e[0m'
else
  bold='' dim='' green='' reset=''
fi

say() { printf '%s%s:%s %s\n' "$green" "$script_name" "$reset" "$*"; }

# die MESSAGE [HINT]: in the suite's own form of an error.
die() {
  printf '%s: error: %s\n' "$script_name" "$1" >&2
  [[ $# -lt 2 ]] || printf '%s: hint: %s\n' "$script_name" "$2" >&2
  exit 1
}

# print_usage: the comment at the top of the script that runs.
print_usage() {
  local script=scripts/$script_name.sh
  [[ -e $script ]] || script=scripts/compare/$script_name.sh
  awk 'NR > 1 && !/^#/ {exit} NR > 1 {sub(/^# ?/, ""); print}' "$script"
}

# heading TEXT: a line that starts a stage, with the time passed since the script started.
heading() { printf '\n%s== %s%s %s[%02d:%02d]%s\n' "$bold" "$*" "$reset" "$dim" $((SECONDS / 60)) $((SECONDS % 60)) "$reset"; }

# quote WORD...: the words as one would type them.
quote() {
  local word out=''
  for word in "$@"; do
    if [[ $word =~ ^[A-Za-z0-9_./:=,+@%-]+$ ]]; then out+="$word "; else out+="${word@Q} "; fi
  done
  printf '%s' "${out% }"
}

# show WORD...: a command as one would type it, on standard error, so that its output can be redirected.
show() { printf '%s$ %s%s\n' "$bold" "$(quote "$@")" "$reset" >&2; }

# run COMMAND...: shows the command, then runs it.
run() {
  show "$@"
  "$@"
}

cache_dir() {
  printf '%s' "${TRAINWRIGHT_LIBTORCH_CACHE:-${XDG_CACHE_HOME:-${HOME:?set HOME or TRAINWRIGHT_LIBTORCH_CACHE}/.cache}/trainwright}"
}

# The folders that scripts/fetch_libtorch.sh and fetch_arrow.sh fill and cmake/LibTorch.cmake and Arrow.cmake look in.
libtorch_dir() { printf '%s/libtorch-%s' "$(cache_dir)" "$torch_version"; }
arrow_dir() { printf '%s/arrow-%s' "$(cache_dir)" "$arrow_version"; }

# How many compilers to run at once: a file that includes torch takes up to 2 GB.
build_jobs() {
  local cores memory_gib
  cores=$(nproc)
  memory_gib=$(awk '/^MemAvailable:/ {print int($2 / 1048576)}' /proc/meminfo)
  local fit=$((memory_gib / 2))
  ((fit >= 1)) || fit=1
  echo $((cores < fit ? cores : fit))
}
