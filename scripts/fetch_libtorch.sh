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

[[ $(uname -sm) == 'Linux x86_64' ]] ||
  die "the pinned LibTorch is for Linux on x86_64; this is $(uname -sm)" "set TRAINWRIGHT_TORCH_DIR to LibTorch for this machine"

target=$(libtorch_dir)
stamp=.trainwright-complete  # holds the pins that the folder was made from

is_complete() { [[ -e $target/torch/lib/libtorch_cpu.so ]] && cmp -s "$pins" "$target/$stamp"; }

if is_complete; then
  say "LibTorch $torch_version is in $target"
  exit 0
fi

mkdir -p "$(dirname "$target")"
exec {lock}> "$target.lock"
if ! flock -n "$lock"; then
  say "another run is fetching LibTorch; waiting for it"
  flock "$lock"
  if is_complete; then
    say "LibTorch $torch_version is in $target"
    exit 0
  fi
fi

rm -rf "$target".partial.*  # of a run that was killed: the lock says that none is at work
partial=$(mktemp -d "$target.partial.XXXXXX")
trap 'rm -rf "$partial"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# pip checks the hashes before it keeps a file. The platform and version options make every Python take the same wheels.
say "fetching LibTorch $torch_version (530 MB) into $target"
run python3 -m pip download --quiet --require-hashes --no-deps --no-cache-dir --only-binary=:all: \
  --implementation cp --abi cp311 --abi none --python-version 3.11 \
  --platform manylinux_2_28_x86_64 --platform manylinux_2_25_x86_64 --platform manylinux_2_17_x86_64 \
  --dest "$partial/wheels" -r "$pins" < /dev/null ||
  die "the download failed; nothing was changed" \
    "check the network and pip's settings, or set TRAINWRIGHT_TORCH_DIR to an existing torch $torch_version"

for wheel in "$partial"/wheels/*.whl; do
  case $wheel in
    */torch-*) wanted=('torch/lib/*' 'torch/include/*') ;;
    *) wanted=('nvidia/cu13/lib/*') ;;
  esac
  unzip -q "$wheel" "${wanted[@]}" '*.dist-info/*' -d "$partial/tree"
done
[[ -e $partial/tree/torch/lib/libtorch_cpu.so && -e $partial/tree/nvidia/cu13/lib/libcudart.so.13 ]] ||
  die "the wheels lack what was expected in them" "check $pins"
cp "$pins" "$partial/tree/$stamp"
sync -f "$partial/tree"

[[ ! -e $target ]] || mv "$target" "$partial/old"
mv "$partial/tree" "$target"
say "LibTorch $torch_version is in $target ($(du -sh "$target" | cut -f1))"
