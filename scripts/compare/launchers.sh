#!/usr/bin/env bash
# Real runs of two and four ranks by every launcher that this machine has, and by train --nproc: all must give the weights of
# one process, bit for bit (--exact-world 4), also with --zero 2. Then the examples of torchrun and Slurm with these launchers.
#
# usage: scripts/compare/launchers.sh [STEPS]     (default: 10)
#
# Looks for torchrun (pip install torch), mpirun.openmpi (openmpi-bin), mpiexec.hydra (mpich) and srun (slurm-client, and
# slurmctld and slurmd where no cluster answers: one of two nodes that are both this machine is then started without munge, as
# root). torchrun also loses a rank and starts all again. Prints Markdown, with a row for a launcher that is not here. Exits 1 when a run
# failed or has other weights. TRAINWRIGHT_BIN names the folder of the tools (default: build/release/bin).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

[[ ${1:-} != -h && ${1:-} != --help ]] || { print_usage; exit 0; }
steps=${1:-10} source_dir=$PWD
bin=$(cd "${TRAINWRIGHT_BIN:-build/release/bin}" && pwd) || die "the tools are not built" "cmake --build --preset release"
data=$source_dir/examples/data/tinyshakespeare.txt
scratch=$(mktemp -d)
stop_slurm() { local file; for file in "$scratch"/slurm/*.pid; do [[ ! -e $file ]] || kill "$(< "$file")" || true; done; }
trap 'stop_slurm; rm -rf "$scratch"' EXIT
cd "$scratch"
export PATH=$bin:$PATH OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
pretokenize --quiet "$data" | pack --quiet --chunk 1024 -o shards/

# A cluster of two nodes that are both this machine, whose users need not prove who they are. Ranks reach the nodes by name.
start_slurm() {
  local plugins sbin=/usr/sbin name node
  name=$(hostname -s)
  plugins=$(dirname "$(find / -xdev -name auth_none.so -path '*slurm*' -print -quit 2> /dev/null)")
  [[ -x $sbin/slurmctld && -x $sbin/slurmd && $plugins != . ]] || return 1
  mkdir -p slurm/state
  cat > slurm/slurm.conf << CONF
ClusterName=local
SlurmctldHost=$name(127.0.0.1)
SlurmctldPort=26817
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
PluginDir=$plugins
StateSaveLocation=$scratch/slurm/state
SlurmdSpoolDir=$scratch/slurm/spool-%n
SlurmctldPidFile=$scratch/slurm/slurmctld.pid
SlurmdPidFile=$scratch/slurm/slurmd-%n.pid
SlurmctldLogFile=$scratch/slurm/slurmctld.log
SlurmdLogFile=$scratch/slurm/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
NodeName=127.0.0.1 NodeHostname=$name NodeAddr=127.0.0.1 Port=26818 CPUs=4 CoresPerSocket=4
NodeName=127.0.0.2 NodeHostname=$name NodeAddr=127.0.0.1 Port=26819 CPUs=4 CoresPerSocket=4
PartitionName=all Nodes=ALL Default=YES State=UP
CONF
  export SLURM_CONF=$scratch/slurm/slurm.conf
  slurmctld -i || return 1
  for node in 127.0.0.1 127.0.0.2; do slurmd -N "$node" || return 1; done
  sleep 3
}
cluster_answers() { command -v srun > /dev/null && { timeout 10 sinfo > /dev/null 2>&1 || start_slurm > slurm.log 2>&1; }; }

failed=0
# row NAME RANKS STATUS START WEIGHTS EXPECTED
row() {
  echo "| $1 | $2 | $3 | $(echo "$(date +%s.%N) - $4" | bc | cut -c1-4) s | ${5:-none} |"
  [[ $3 = 0 && $5 && $5 = "$6" ]] || { failed=1; tail -n 5 "$1.log" >&2; }
}
absent() { echo "| $1 | | not here | | |"; }

# run NAME RANKS OPTIONS COMMAND...: COMMAND starts the ranks of the train command behind it
run() {
  local name=$1 ranks=$2 options=$3 start status=0 weights=''
  shift 3
  start=$(date +%s.%N)
  # shellcheck disable=SC2086  # words of their own
  "$@" train --model llama-1m --seq 128 --batch 1 --accum $((4 / ranks)) --exact-world 4 --threads 1 --steps "$steps" \
    --seed 1 --dist-timeout 20 $options --data shards --out "$name" > "$name.log" 2>&1 || status=$?
  [[ ! -e $name/complete.json ]] || weights=$(sha256sum < "$name/latest/model.safetensors" | cut -c1-16)
  row "$name" "$ranks" "$status" "$start" "$weights" "${expected:=$weights}"
}
# all_of NAME COMMAND...: COMMAND, with a number of ranks behind it, starts so many
all_of() {
  local name=$1
  shift
  run "$name-2" 2 '' "$@" 2
  run "$name-4" 4 '' "$@" 4
  run "$name-2-zero" 2 '--zero 2' "$@" 2
}
with_nproc() { TRAINWRIGHT_NPROC=$1 "${@:2}"; }
with_torchrun() { torchrun --standalone --nproc-per-node "$1" --no-python "${@:2}"; }

# example NAME RANKS COMMAND...: COMMAND makes a run in the folder NAME
example() {
  local name=$1 ranks=$2 start status=0 weights=''
  shift 2
  start=$(date +%s.%N)
  "$@" > "$name.log" 2>&1 || status=$?
  [[ ! -e $name/run/complete.json ]] || weights=$(sha256sum < "$name/run/latest/model.safetensors" | cut -c1-16)
  row "$name" "$ranks" "$status" "$start" "$weights" "${expected_of_example:=$weights}"
}
make_example() {
  make -f "$source_dir/examples/torchrun/Makefile" BIN="$bin" DATA="$scratch/data" STEPS="$steps" WORK="$1" RANKS="$2" "${@:3}"
}
# The jobs of submit.sh, which are waited for.
submit_example() {
  local jobs
  jobs=$(WORK=$scratch/$1 DATA=$scratch/data/tinyshakespeare.txt STEPS=$steps NODES=$nodes TASKS=2 BIN=$bin \
    "$source_dir/examples/slurm/submit.sh" | grep -o '[0-9]\+ (' | grep -o '[0-9]\+' | paste -sd,)
  for _ in {1..300}; do
    [[ $(squeue --noheader --jobs "$jobs" 2> /dev/null) ]] || break
    sleep 1
  done
  cat "$1"/logs/*
  [[ -e $1/run/complete.json ]]
}

echo '| started by | ranks | exit status | wall time | sha256 of the weights |'
echo '| --- | --: | --: | --: | --- |'
run one-process 1 '' env
all_of nproc with_nproc
if command -v torchrun > /dev/null; then
  all_of torchrun with_torchrun
  # Kills rank 1 once there is a checkpoint; torchrun's second attempt leaves it alone.
  (
    for _ in {1..600}; do
      [[ ! -e torchrun-restarted/latest ]] || break
      sleep 0.1
    done
    for process in $(pgrep -f 'out torchrun-restarted'); do
      tr '\0' '\n' < "/proc/$process/environ" 2> /dev/null | grep -qx RANK=1 && kill -KILL "$process"
    done
  ) &
  run torchrun-restarted 2 '--save-every 1' torchrun --standalone --nproc-per-node 2 --max-restarts 2 --no-python
  (($(grep -c '"type":"run_begin"' torchrun-restarted/metrics.jsonl) > 1)) ||
    { failed=1; echo 'torchrun-restarted was not restarted' >&2; }
else
  absent torchrun
fi
if command -v mpirun.openmpi > /dev/null; then all_of mpirun mpirun.openmpi --oversubscribe -np; else absent mpirun; fi
if command -v mpiexec.hydra > /dev/null; then all_of mpiexec mpiexec.hydra -n; else absent mpiexec; fi
nodes=0
if cluster_answers; then
  nodes=$(($(sinfo --noheader --format %D | paste -sd+) > 1 ? 2 : 1))
  all_of srun srun --ntasks
  ((nodes == 1)) || run srun-two-nodes 4 '' srun --nodes 2 --ntasks-per-node 2
else
  absent srun
fi

mkdir data
head -n 2000 "$data" > data/tinyshakespeare.txt
export TRAINWRIGHT_SEQ=64 TRAINWRIGHT_EVAL_TOKENS=2000
example example-one-process 1 make_example example-one-process 1 TORCHRUN=
if command -v torchrun > /dev/null; then
  example example-torchrun 2 make_example example-torchrun 2
else
  absent example-torchrun
fi
if ((nodes > 0)); then
  example example-slurm $((2 * nodes)) submit_example example-slurm
else
  absent example-slurm
fi
# first COMMAND...: its first line
first() { "$@" 2>&1 | sed -n 1p; }
printf '\n%s processors.' "$(nproc)"
! command -v torchrun > /dev/null || printf ' torchrun of torch %s.' "$(torchrun --no-python python3 -c '
import importlib.metadata
print(importlib.metadata.version("torch"))' 2> /dev/null)"
! command -v mpirun.openmpi > /dev/null || printf ' %s.' "$(first mpirun.openmpi --version)"
! command -v mpiexec.hydra > /dev/null || printf ' MPICH%s.' "$(mpiexec.hydra --version | sed -n 's/^ *Version: */ /p')"
((nodes == 0)) || printf ' %s, nodes: %s.' "$(first srun --version)" "$nodes"
echo
exit $failed
