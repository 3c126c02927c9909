#!/usr/bin/env bash
# Fetches Arrow's Parquet reader, pinned by version and sha256, into a cache folder that CMake finds by itself.
#
# usage: scripts/fetch_arrow.sh
#
# Optional: with it, the next build makes the plugin by which pretokenize reads .parquet files. The folder is
# ${TRAINWRIGHT_LIBTORCH_CACHE:-${XDG_CACHE_HOME:-~/.cache}/trainwright}/arrow-VERSION, beside LibTorch's: 55 MB are
# downloaded, 80 MB stay. It appears complete or not at all; when it is there, nothing is done and no network is needed.
# TRAINWRIGHT_ARROW_DIR=DIR has CMake use an existing folder with include/, libarrow.so.2600 and libparquet.so.2600
# instead, such as that of an installed pyarrow of this version.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/common.sh
source scripts/common.sh
# shellcheck source=scripts/fetch_wheels.sh
source scripts/fetch_wheels.sh

pins=scripts/arrow.requirements.txt
case ${1:-} in
  '') ;;
  -h | --help) print_usage; exit 0 ;;
  *) die "unknown argument $1" "scripts/fetch_arrow.sh --help" ;;
esac

name="Arrow $arrow_version" size='55 MB' target=$(arrow_dir) probe=libparquet.so.2600
own="set TRAINWRIGHT_ARROW_DIR to an existing Arrow $arrow_version"
unpack_wheels() {
  unzip -q "$1"/pyarrow-*.whl pyarrow/libarrow.so.2600 pyarrow/libparquet.so.2600 'pyarrow/include/arrow/*' \
    'pyarrow/include/parquet/*' 'pyarrow-*.dist-info/licenses/*' -d "$1"
  mv "$1"/pyarrow/* "$2"
  mv "$1"/pyarrow-*.dist-info/licenses "$2/licenses"
}
fetch_wheels --platform manylinux_2_28_x86_64
