#!/usr/bin/env bash
# Installs the system packages that Trainwright is built with, and only those that are missing.
#
# usage: scripts/setup.sh [--tests]
#
#   --tests   also what the tests need (GoogleTest and a few command-line programs)
#
# For Debian 12 and Ubuntu 24.04, as root or as a user with sudo. When everything is there it touches nothing and
# needs no network. On another system, install what the lists below name by your own means and build with
# `cmake --preset release && cmake --build --preset release`; without the second list, with -DTRAINWRIGHT_TESTS=OFF after
# the first `release`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

build_packages=(
  g++ cmake ninja-build pkg-config ccache git
  libcli11-dev nlohmann-json3-dev libsimdjson-dev libyaml-cpp-dev
  zlib1g-dev libzstd-dev libxxhash-dev libssl-dev libsentencepiece-dev libgloo-dev
  python3 python3-pip ca-certificates unzip  # to fetch LibTorch
)
test_packages=(libgtest-dev libgmock-dev make mandoc zstd clang-format-14 lld)

packages=("${build_packages[@]}")
for argument in "$@"; do
  case $argument in
    --tests) packages+=("${test_packages[@]}") ;;
    -h | --help) print_usage; exit 0 ;;
    *) die "unknown argument $argument" "scripts/setup.sh --help" ;;
  esac
done

command -v dpkg-query apt-get > /dev/null ||
  die "this is no Debian or Ubuntu: there is no apt-get" "install the equivalents of: ${packages[*]}"

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${Status}' "$package" 2> /dev/null || true)
  [[ $status == *' installed' ]] || missing+=("$package")
done

if ((${#missing[@]})); then
  install=(apt-get install -y --no-install-recommends "${missing[@]}")
  update=(apt-get update)
  as_root=(env DEBIAN_FRONTEND=noninteractive)
  if ((EUID != 0)); then
    command -v sudo > /dev/null || die "${#missing[@]} packages are missing, and installing them takes root" \
      "as root: $(quote "${install[@]}")"
    as_root=(sudo "${as_root[@]}")
  fi
  say "installing ${#missing[@]} missing of ${#packages[@]} packages: ${missing[*]}"
  run "${as_root[@]}" "${update[@]}" -qq
  show "${as_root[@]}" "${install[@]}"
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  "${as_root[@]}" "${install[@]}" -qq -o Dpkg::Use-Pty=0 < /dev/null > "$log" 2>&1 || {
    cat "$log" >&2
    die "apt-get could not install the packages"
  }
else
  say "all ${#packages[@]} system packages are installed"
fi

cmake_version=$(cmake --version | awk 'NR == 1 {print $3}')
printf '3.25\n%s\n' "$cmake_version" | sort -CV ||
  die "CMake $cmake_version is too old: 3.25 is needed" "use Debian 12, Ubuntu 24.04 or newer, or put a newer cmake first in PATH"
