#!/usr/bin/env bash
# Builds Trainwright and runs its tests: from a bare system in one command, or what changed since the last run.
#
# usage: scripts/test.sh [release] [cuda] [asan] [tsan]
#
#   release   the optimised build of everything, and all tests
#   cuda      the CUDA plugins for compute capability 7.5, 8.0 and 9.0, compiled where CUDA 13's nvcc is, loaded, and looked
#             through; a GPU is not needed
#   asan      the layers and tools without torch under AddressSanitizer and UndefinedBehaviorSanitizer, and their tests
#   tsan      the multi-threaded layers without torch and the CUDA kernels (on the host) under ThreadSanitizer, and their tests
#
# Without arguments: all four. Installs missing system packages (scripts/setup.sh) and fetches LibTorch
# (scripts/fetch_libtorch.sh) first. Tests labelled "data" need the folder that TRAINWRIGHT_TEST_DATA names; without it
# they are left out, and the last lines say so. As many compilers and tests run at once as there are processors and memory for
# them; CMAKE_BUILD_PARALLEL_LEVEL and CTEST_PARALLEL_LEVEL say otherwise.
# What this machine lacks skips tests, which are named with what they lack: the
# Python packages tensorboard, mlflow, wandb and safetensors, say, which read what the tools wrote. Nothing here installs these;
# PYTHON may name a Python that has them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/common.sh
source scripts/common.sh

suites=()
for argument in "$@"; do
  case $argument in
    release | cuda | asan | tsan) suites+=("$argument") ;;
    -h | --help) print_usage; exit 0 ;;
    *) die "unknown argument $argument" "scripts/test.sh --help" ;;
  esac
done
((${#suites[@]})) || suites=(release cuda asan tsan)
werror=-DTRAINWRIGHT_WERROR=${TRAINWRIGHT_WERROR:-OFF}
threaded_layers=(io tok documents packing loading run checkpoint cuda_kernels)

passed=0 failed=0 skipped=0 gpu_not_run=0 failed_suites=()

# test_suite PRESET [CTEST_ARGUMENT...]: runs the tests of a build and adds their cases to the totals.
test_suite() {
  local preset=$1 build_dir=$PWD/build/$1 status=0 counts
  shift
  local selection=("$@")
  [[ -n ${TRAINWRIGHT_TEST_DATA:-} ]] || selection+=(--label-exclude '^data$')
  rm -f "$build_dir"/junit.xml "$build_dir"/tests/suites/*/*.log
  run ctest --preset "$preset" --parallel "$(test_jobs)" --timeout 900 --no-tests=error --output-junit "$build_dir/junit.xml" \
    "${selection[@]}" < /dev/null || status=$?
  if [[ -s $build_dir/junit.xml ]]; then
    counts=$(scripts/test_report.py "$build_dir")
    head -n -1 <<< "$counts"
    skipped=$((skipped + $(grep -c '^SKIPPED ' <<< "$counts" || true)))
    read -r -a counts <<< "${counts##*$'\n'}"
    passed=$((passed + counts[0])) failed=$((failed + counts[1])) gpu_not_run=$((gpu_not_run + counts[2]))
    ((counts[1] == 0)) || status=1
  fi
  ((status == 0)) || failed_suites+=("$preset")
}

heading "Set-up"
part "set-up" scripts/setup.sh --tests
# Where python3 is the script of a version manager that looks for the interpreter, that takes longer than most uses of it.
interpreter=$(python3 -c 'import sys; print(sys.executable)')
[[ $interpreter == "$(command -v python3)" ]] || PATH=${interpreter%/*}:$PATH
[[ ! " ${suites[*]} " =~ ' '(release|cuda)' ' ]] || part "LibTorch" scripts/fetch_libtorch.sh

for suite in "${suites[@]}"; do
  case $suite in
    release)
      heading "Release build"
      part "release: configure" configure release -DTRAINWRIGHT_TESTS=ON "$werror"
      part "release: build" build release
      heading "All tests"
      part "release: tests" test_suite release
      ;;
    cuda)
      heading "CUDA plugin"
      if has_cuda_13; then
        part "cuda: configure" configure cuda -DTRAINWRIGHT_TESTS=ON "$werror"
        part "cuda: build" build cuda cuda_plugin_tests
        part "cuda: tests" test_suite cuda --tests-regex '^cuda/'
        cuda_plugin='compiled and loaded'
      else
        cuda_plugin='left out: there is no nvcc of CUDA 13'
      fi
      ;;
    asan)
      heading "Build with AddressSanitizer and UndefinedBehaviorSanitizer, without torch"
      part "asan: configure" configure asan "$werror"
      part "asan: build" build asan
      heading "Tests under AddressSanitizer and UndefinedBehaviorSanitizer"
      part "asan: tests" test_suite asan
      ;;
    tsan)
      heading "Build with ThreadSanitizer: the multi-threaded layers without torch"
      part "tsan: configure" configure tsan "$werror"
      part "tsan: build" build tsan "${threaded_layers[@]/%/_test}"
      heading "Tests under ThreadSanitizer"
      part "tsan: tests" test_suite tsan --tests-regex "^($(IFS='|'; printf '%s' "${threaded_layers[*]}"))/"
      ;;
  esac
done

heading "Minutes by part"
show_parts

heading "Result"
[[ -z ${cuda_plugin:-} ]] || say "CUDA plugin: $cuda_plugin"
((gpu_not_run == 0)) || say "$gpu_not_run GPU tests NOT RUN: no GPU that can be used"
((skipped == 0)) || say "$skipped skipped, above as SKIPPED with what they lack"
[[ -n ${TRAINWRIGHT_TEST_DATA:-} ]] || say 'left out: the tests labelled "data" (TRAINWRIGHT_TEST_DATA is not set)'
((${#failed_suites[@]} == 0)) || say "failed: ${failed_suites[*]}"
printf '%d passed, %d failed\n' "$passed" "$failed"
((${#failed_suites[@]} == 0))
