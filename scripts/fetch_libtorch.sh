#!/usr/bin/env bash
# Fetches LibTorch, pinned by version and sha256, into a cache folder that CMake finds by itself.
#
# usage: scripts/fetch_libtorch.sh [--cuda]
#
#   --cuda   also the libraries that LibTorch needs to compute on a GPU (cuBLAS, cuDNN, NCCL and others): 2.0 GB more are
#            downloaded, 2.6 GB stay. They are linked into the folder of LibTorch, where libtorch_cuda.so looks for them.
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

cuda=0
while (($#)); do
  case $1 in
    --cuda) cuda=1 ;;
    -h | --help) print_usage; exit 0 ;;
    *) die "unknown argument $1" "scripts/fetch_libtorch.sh --help" ;;
  esac
  shift
done

# missing_beside LIBRARY: the names of the libraries that the loader would not find for it.
missing_beside() {
  { LD_LIBRARY_PATH='' ldd "$1" 2> /dev/null || true; } | awk '/not found/ {print $1}' | sort -u | paste -sd ' '
}

# check_cuda FOLDER: that libtorch_cuda.so in it can be loaded.
check_cuda() {
  local missing
  missing=$(missing_beside "$1/libtorch_cuda.so")
  [[ -z $missing ]] || die "$1/libtorch_cuda.so lacks $missing" "$2"
}

if [[ -n ${TRAINWRIGHT_TORCH_DIR:-} ]]; then
  for library in "$TRAINWRIGHT_TORCH_DIR"/{torch/lib,lib}/libtorch_cpu.so; do
    if [[ -e $library ]]; then
      say "using TRAINWRIGHT_TORCH_DIR=$TRAINWRIGHT_TORCH_DIR"
      ((!cuda)) || check_cuda "${library%/*}" 'pip install torch puts them beside it; or unset TRAINWRIGHT_TORCH_DIR'
      exit 0
    fi
  done
  die "TRAINWRIGHT_TORCH_DIR=$TRAINWRIGHT_TORCH_DIR holds no torch/lib/libtorch_cpu.so" \
    "name the folder of an unpacked torch wheel, or unset it to have LibTorch $torch_version fetched"
fi

own='set TRAINWRIGHT_TORCH_DIR to an existing LibTorch'

# Each in a shell of its own, which fetch_wheels ends when there is nothing to do.
fetch_libtorch() (
  name="LibTorch $torch_version" size='530 MB' target=$(libtorch_dir) probe=torch/lib/libtorch_cpu.so
  pins=scripts/libtorch.requirements.txt
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
)

fetch_cuda_libraries() (
  name="CUDA libraries of LibTorch $torch_version" size='2.0 GB' target=$(cuda_libraries_dir)
  probe=nvidia/cu13/lib/libcublasLt.so.13
  pins=scripts/libtorch-cuda.requirements.txt
  unpack_wheels() {
    local wheel
    for wheel in "$1"/*.whl; do unzip -q "$wheel" 'nvidia/*/lib/*.so*' '*.dist-info/*' -d "$2"; done
  }
  fetch_wheels --abi none --platform manylinux_2_27_x86_64 --platform manylinux_2_18_x86_64 \
    --platform manylinux2014_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux2010_x86_64 \
    --platform manylinux_2_12_x86_64
)

fetch_libtorch
if ((cuda)); then
  fetch_cuda_libraries
  cp -rlf "$(cuda_libraries_dir)/nvidia" "$(libtorch_dir)/"  # hard links: they take no room
  check_cuda "$(libtorch_dir)/torch/lib" "delete $(cuda_libraries_dir) and run scripts/fetch_libtorch.sh --cuda again"
fi
