#!/usr/bin/env bash
# Real runs of two ranks by every launcher that this machine has, and by train --nproc: all must give the weights of one
# process, bit for bit (--exact-world 2).
#
# usage: scripts/compare/launchers.sh [STEPS]     (default: 10)
#
# Looks for torchrun (pip install torch), mpirun.openmpi (openmpi-bin), mpiexec.hydra (mpich) and srun (slurm-client, and
# slurmctld and slurmd where no cluster answers: one of this machine alone is then started without munge, as root). torchrun
# also loses a rank and starts all again. Prints Markdown. Exits 1 when a run failed or has other weights.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

steps=${1:-10}
bin=$(cd "${TRAINWRIGHT_BIN:-build/release/bin}" && pwd) || die "the tools are not built" "cmake --build --preset release"
data=$PWD/examples/data/tinyshakespeare.txt
scratch=$(mktemp -d)
stop_slurm() { for file in "$scratch"/slurm/*.pid; do [[ ! -e $file ]] || kill "$(< "$file")" || true; done; }
trap 'stop_slurm; rm -rf "$scratch"' EXIT
cd "$scratch"
export PATH=$bin:$PATH OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
pretokenize --quiet "$data" | pack --quiet --chunk 1024 -o shards/

# A cluster of this machine alone, whose users need not prove who they are.
start_slurm() {
  local plugins sbin=/usr/sbin name
  name=$(hostname -s)
  plugins=$(dirname "$(find / -xdev -name auth_none.so -path '*slurm*' -print -quit 2> /dev/null)")
  [[ -x $sbin/slurmctld && -x $sbin/slurmd && $plugins != . ]] || return 1
  mkdir -p slurm/state slurm/spool
  cat > slurm/slurm.conf << CONF
ClusterName=local
SlurmctldHost=$name(127.0.0.1)
SlurmctldPort=26817
SlurmdPort=26818
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
PluginDir=$plugins
StateSaveLocation=$scratch/slurm/state
SlurmdSpoolDir=$scratch/slurm/spool
SlurmctldPidFile=$scratch/slurm/slurmctld.pid
SlurmdPidFile=$scratch/slurm/slurmd.pid
SlurmctldLogFile=$scratch/slurm/slurmctld.log
SlurmdLogFile=$scratch/slurm/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
NodeName=$name NodeAddr=127.0.0.1 CPUs=4 CoresPerSocket=4
PartitionName=all Nodes=ALL Default=YES State=UP
CONF
  export SLURM_CONF=$scratch/slurm/slurm.conf
  slurmctld -i && slurmd && sleep 3
}
cluster_answers() { command -v srun > /dev/null && { timeout 10 sinfo > /dev/null 2>&1 || start_slurm > slurm.log 2>&1; }; }

failed=0
# run NAME RANKS COMMAND...: COMMAND starts the ranks of the train command behind it
run() {
  local name=$1 ranks=$2 start status=0 weights=''
  shift 2
  start=$(date +%s.%N)
  "$@" train --model llama-1m --seq 128 --batch 1 --accum $((2 / ranks)) --exact-world 2 --threads 1 --steps "$steps" \
    --save-every 5 --seed 1 --dist-timeout 20 --data shards --out "$name" > "$name.log" 2>&1 || status=$?
  [[ ! -e $name/complete.json ]] || weights=$(sha256sum < "$name/latest/model.safetensors" | cut -c1-16)
  echo "| $name | $ranks | $status | $(echo "$(date +%s.%N) - $start" | bc | cut -c1-4) s | ${weights:-none} |"
  [[ $status = 0 && $weights ]] && [[ $weights = "${expected:=$weights}" ]] || { failed=1; tail -n 5 "$name.log" >&2; }
}

echo '| started by | ranks | exit status | wall time | sha256 of the weights |'
echo '| --- | --: | --: | --: | --- |'
run one-process 1 env
run nproc 2 env TRAINWRIGHT_NPROC=2
if command -v torchrun > /dev/null; then
  run torchrun 2 torchrun --standalone --nproc-per-node 2 --no-python
  # Kills rank 1 once there is a checkpoint; torchrun's second attempt leaves it alone.
  (
    until [[ -e torchrun-restarted/latest ]]; do sleep 0.1; done
    for process in $(pgrep -f 'out torchrun-restarted'); do
      tr '\0' '\n' < "/proc/$process/environ" 2> /dev/null | grep -qx RANK=1 && kill -KILL "$process"
    done
  ) &
  run torchrun-restarted 2 torchrun --standalone --nproc-per-node 2 --max-restarts 2 --no-python
fi
! command -v mpirun.openmpi > /dev/null || run mpirun 2 mpirun.openmpi --oversubscribe -np 2
! command -v mpiexec.hydra > /dev/null || run mpiexec 2 mpiexec.hydra -n 2
! cluster_answers || run srun 2 srun --ntasks 2
exit $failed
