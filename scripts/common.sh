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

# run_comparison SCRIPT ARGUMENT...: runs a script of scripts/compare in the Python that PYTHON names, the built tools first in
# PATH, with a scratch folder that goes when this shell ends.
run_comparison() {
  export PATH=$PWD/build/release/bin:$PATH
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  "${PYTHON:-python3}" "scripts/compare/$1" --scratch "$scratch" "${@:2}"
}

cache_dir() {
  printf '%s' "${TRAINWRIGHT_LIBTORCH_CACHE:-${XDG_CACHE_HOME:-${HOME:?set HOME or TRAINWRIGHT_LIBTORCH_CACHE}/.cache}/trainwright}"
}

# The folders that scripts/fetch_libtorch.sh and fetch_arrow.sh fill and cmake/LibTorch.cmake and Arrow.cmake look in.
libtorch_dir() { printf '%s/libtorch-%s' "$(cache_dir)" "$torch_version"; }
arrow_dir() { printf '%s/arrow-%s' "$(cache_dir)" "$arrow_version"; }
# What `fetch_libtorch.sh --cuda` unpacks and links into the former.
cuda_libraries_dir() { printf '%s/cuda-libraries-%s' "$(cache_dir)" "$torch_version"; }

# sees_nvidia_driver: whether this machine drives an NVIDIA GPU.
sees_nvidia_driver() {
  compgen -G '/dev/nvidia[0-9]*' > /dev/null || { command -v nvidia-smi > /dev/null && nvidia-smi -L > /dev/null 2>&1; }
}

# has_cuda_13: whether the nvcc that cmake/Cuda.cmake takes is of CUDA 13, as LibTorch is. That of Debian's packages is older.
has_cuda_13() {
  local nvcc cached
  # What the folder was configured with takes precedence.
  cached=$(sed -n 's/^CMAKE_CUDA_COMPILER:[A-Z]*=//p' build/release/CMakeCache.txt 2> /dev/null || true)
  nvcc=${cached:-${CUDACXX:-$(command -v nvcc || printf /usr/local/cuda/bin/nvcc)}}
  [[ $("$nvcc" --version 2> /dev/null) == *'release 13.'* ]]
}

# What follows asks the machine below machine_root (empty: this one) and its control groups: in a container /proc is the host's.
: "${machine_root:=}"

# least: the least of the numbers of standard input; nothing where it is empty.
least() { sort -n | awk 'NR == 1'; }

# group_folders CONTROLLER: folders of this process's control group and of those that hold it. Where the group's path is
# that of another name space, the mount point stands for it.
group_folders() {
  local controllers group mount
  [[ -r $machine_root/proc/self/cgroup ]] || return 0
  while IFS=: read -r _ controllers group; do
    case ,$controllers, in
      ,,) mount=$machine_root/sys/fs/cgroup ;;  # version 2
      *,"$1",*) mount=$machine_root/sys/fs/cgroup/$1 ;;
      *) continue ;;
    esac
    while [[ $group == /?* ]]; do
      printf '%s\n' "$mount$group"
      group=${group%/*}
    done
    printf '%s\n' "$mount"
  done < "$machine_root/proc/self/cgroup"
}

# memory_mib MemTotal|MemAvailable: in all, or what is left; of a group what its processes hold is taken, not its caches.
memory_mib() {
  local field=$1 folder file limit used
  {
    awk -v field="$field:" '$1 == field {print int($2 / 1024)}' "$machine_root/proc/meminfo" 2> /dev/null || true
    while IFS= read -r folder; do
      for file in memory.max memory.limit_in_bytes; do
        limit=$(cat "$folder/$file" 2> /dev/null) || continue
        [[ $limit =~ ^[0-9]+$ ]] || continue  # "max"
        used=0
        if [[ $field == MemAvailable ]]; then
          used=$(awk '$1 == "anon" || $1 == "total_rss" {print $2; exit}' "$folder/memory.stat" 2> /dev/null) || true
        fi
        printf '%s\n' $(((limit - ${used:-0}) / 1048576))
      done
    done < <(group_folders memory)
  } | least
}

# available_cores: those that this process may use, begun ones of a quota counted whole.
available_cores() {
  local folder quota period
  {
    nproc
    while IFS= read -r folder; do
      if [[ -r $folder/cpu.max ]]; then
        read -r quota period < "$folder/cpu.max" || true
      else
        quota=$(cat "$folder/cpu.cfs_quota_us" 2> /dev/null) || continue
        period=$(cat "$folder/cpu.cfs_period_us" 2> /dev/null) || continue
      fi
      [[ $quota =~ ^[1-9][0-9]*$ && $period =~ ^[1-9][0-9]*$ ]] || continue  # "max", -1
      printf '%s\n' $(((quota + period - 1) / period))
    done < <(group_folders cpu)
  } | least
}

# fitting MIB MemTotal|MemAvailable: how many programs that take as much fit into memory, at least one; nothing where the
# machine does not say what it has.
fitting() {
  local memory
  memory=$(memory_mib "$2")
  [[ ! $memory ]] || echo $((memory >= $1 ? memory / $1 : 1))
}

# compilers_in_memory MemTotal|MemAvailable: a file that includes torch takes up to 2 GB.
compilers_in_memory() { fitting 2048 "$@"; }

# at_once VARIABLE COMMAND...: the number that the variable has, or else as many as there are cores, and fit by what COMMAND says.
at_once() {
  if [[ ${!1:-} =~ ^[1-9][0-9]*$ ]]; then
    printf '%s\n' "${!1}"
  else
    { available_cores && "${@:2}"; } | least
  fi
}

# build_jobs: how many compilers to run at once.
build_jobs() { at_once CMAKE_BUILD_PARALLEL_LEVEL compilers_in_memory MemAvailable; }

# test_jobs: how many tests to run at once; few take 1 GB.
test_jobs() { at_once CTEST_PARALLEL_LEVEL fitting 1024 MemAvailable; }

# configure PRESET [ARGUMENT...]: cmake, whose output goes to build/PRESET/configure.log.
configure() {
  local preset=$1 log=build/$1/configure.log
  shift
  mkdir -p "${log%/*}"
  show cmake --preset "$preset" "$@"
  cmake --preset "$preset" "$@" > "$log" 2>&1 || {
    cat "$log" >&2
    die "cmake could not configure the build" "its output is in $log"
  }
  sed -n '/^CMake Warning at /,/^$/p' "$log" >&2
}

# build PRESET [TARGET...]: compiles with one line of progress; what the compiler says goes to build/PRESET/build.log, and
# if it fails, here, too.
build() {
  local preset=$1 log=build/$1/build.log jobs hint
  shift
  jobs=$(build_jobs)
  local command=(cmake --build --preset "$preset" --parallel "$jobs")
  (($# == 0)) || command+=(--target "$@")
  show "${command[@]}"
  NINJA_STATUS='[%f/%t] ' "${command[@]}" < /dev/null 2>&1 | tee "$log" | show_progress || {
    # ninja writes "FAILED: <file>", the command, and what it said, up to the next step.
    awk '/^FAILED: /{on = 1; print; getline; next} /^\[[0-9]+\/[0-9]+\] |^ninja: /{on = 0} on' "$log" >&2
    grep -q '^FAILED: ' "$log" || tail -n 20 "$log" >&2
    hint="its whole output is in $log"
    ! grep -q 'Killed signal' "$log" ||
      hint="a compiler found no memory: fewer at once by CMAKE_BUILD_PARALLEL_LEVEL=$((jobs > 1 ? jobs / 2 : 1)); $hint"
    die "the build failed" "$hint"
  }
}

# show_progress: reads ninja's output and counts its steps: on a terminal in one line, elsewhere every fifth of them.
show_progress() {
  local line step='' total=0 fifth=0 warnings=0
  while IFS= read -r line; do
    [[ $line != *': warning: '* ]] || warnings=$((warnings + 1))
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\]\ (.*) ]] || continue
    step=${BASH_REMATCH[1]} total=${BASH_REMATCH[2]}
    if [[ -t 1 ]]; then
      printf '\r\e[K%s of %s  %.60s' "$step" "$total" "${BASH_REMATCH[3]##*/}"
    elif ((step * 5 / total > fifth)); then
      fifth=$((step * 5 / total))
      printf '%s of %s\n' "$step" "$total"
    fi
  done
  [[ -z $step || ! -t 1 ]] || printf '\r\e[K%s of %s\n' "$step" "$total"
  [[ -n $step ]] || say "nothing to build"
  ((warnings == 0)) || say "the compiler warned $warnings times (see the log)"
}

# part NAME COMMAND...: runs a command and remembers what it took for show_parts.
parts=()
part() {
  local name=$1 took
  shift
  took=$(mktemp)
  local TIMEFORMAT='%R %U %S'
  { time "$@" 2>&3; } 3>&2 2> "$took"
  parts+=("$(tail -n 1 "$took") $name")
  rm -f "$took"
}

# show_parts: minutes by part, as the clock and as the processors count them.
show_parts() {
  printf '%s\n' "${parts[@]}" | awk '
    BEGIN {printf "%8s %8s\n", "minutes", "CPU min"}
    {wall = $1 / 60; cpu = ($2 + $3) / 60; walls += wall; cpus += cpu; sub(/^[^ ]+ [^ ]+ [^ ]+ /, "");
     printf "%8.1f %8.1f  %s\n", wall, cpu, $0}
    END {printf "%8.1f %8.1f  in all\n", walls, cpus}'
}
