#!/usr/bin/env bash
# Fetches LibTorch, pinned by version and sha256, into a cache folder that CMake finds by itself.
#
# usage: scripts/fetch_libtorch.sh
#
# The folder is ${TRAINWRIGHT_LIBTORCH_CACHE:-${XDG_CACHE_HOME:-~/.cache}/trainwright}/libtorch-VERSION: 530 MB are
# downloaded, 1 GB stays. It appears complete or not at all; when it is there, nothing is done and no network is needed.
# TRAINWRIGHT_TORCH_DIR=DIR uses an existing one instead: a folder with torch/lib and torch/include (such as a Python
# environment's site-packages), or that torch folder itself.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/common.sh
source scripts/common.sh
# shellcheck source=scripts/fetch_wheels.sh
source scripts/fetch_wheels.sh

pins=scripts/libtorch.requirements.txt
case ${1:-} in
  '') ;;
  -h | --help) print_usage; exit 0 ;;
  *) die "unknown argument $1" "scripts/fetch_libtorch.sh --help" ;;
esac

if [[ -n ${TRAINWRIGHT_TORCH_DIR:-} ]]; then
  for library in "$TRAINWRIGHT_TORCH_DIR"/{torch/lib,lib}/libtorch_cpu.so; do
    if [[ -e $library ]]; then
      say "using TRAINWRIGHT_TORCH_DIR=$TRAINWRIGHT_TORCH_DIR"
      exit 0
    fi
  done
  die "TRAINWRIGHT_TORCH_DIR=$TRAINWRIGHT_TORCH_DIR holds no torch/lib/libtorch_cpu.so" \
    "name the folder of an unpacked torch wheel, or unset it to have LibTorch $torch_version fetched"
fi

name="LibTorch $torch_version" size='530 MB' target=$(libtorch_dir) probe=torch/lib/libtorch_cpu.so
own='set TRAINWRIGHT_TORCH_DIR to an existing LibTorch'
unpack_wheels() {
  local wheel wanted
  for wheel in "$1"/*.whl; do
    case $wheel in
      */torch-*) wanted=('torch/lib/*' 'torch/include/*') ;;
      *) wanted=('nvidia/cu13/lib/*') ;;
    esac
    unzip -q "$wheel" "${wanted[@]}" '*.dist-info/*' -d "$2"
  done
  [[ -e $2/nvidia/cu13/lib/libcudart.so.13 ]] || die "the wheels lack libcudart.so.13" "check $pins"
}
fetch_wheels --abi none --platform manylinux_2_28_x86_64 --platform manylinux_2_25_x86_64 \
  --platform manylinux_2_17_x86_64
