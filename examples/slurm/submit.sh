#!/usr/bin/env bash
# Sends the stages to Slurm, each job waiting for the one before: an array of pretokenize, pack, train on several nodes.
#
# usage: [VARIABLE=VALUE]... examples/slurm/submit.sh [SBATCH_OPTION]...
#
#   DATA      what is trained on (default: the plays of Shakespeare in examples/data)
#   WORK      folder of all output, which all nodes see (default: work/ here)
#   SLICES    jobs that divide the input among them (default: 4)
#   NODES     that train (default: 2), with TASKS processes each (default: 2); NODES x TASKS is 1, 2 or 4
#   STEPS     of training (default: 200)
#   BIN       folder of the tools (default: build/release/bin of this clone)
#
# SBATCH_OPTIONs, such as --account or --partition, are given to each job. A job that is sent again after a failure goes on
# where it was: pretokenize and pack make whole files or none, train resumes.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export DATA=${DATA:-$here/../data/tinyshakespeare.txt} WORK=${WORK:-$PWD/work} SLICES=${SLICES:-4} STEPS=${STEPS:-200}
nodes=${NODES:-2} tasks=${TASKS:-2}
PATH=$(cd "${BIN:-$here/../../build/release/bin}" && pwd):$PATH
export PATH ACCUM=$((4 / (nodes * tasks)))  # of each process: a step has the same samples with any number of them
mkdir -p "$WORK/tokens" "$WORK/logs"

send() { sbatch --parsable --output="$WORK/logs/%x-%j.log" --open-mode=append "$@"; }
tokens=$(send "$@" --array="1-$SLICES" "$here/pretokenize.sbatch")
shards=$(send "$@" --dependency="afterok:$tokens" "$here/pack.sbatch")
run=$(send "$@" --dependency="afterok:$shards" --nodes="$nodes" --ntasks-per-node="$tasks" "$here/train.sbatch")
echo "jobs: $tokens (pretokenize), $shards (pack), $run (train); train --status $WORK/run tells how far it is"
