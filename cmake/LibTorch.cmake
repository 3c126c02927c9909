# LibTorch from an unpacked torch wheel. The wheel's own TorchConfig.cmake demands a whole CUDA toolkit,
# so the imported targets are made here: tools link libtorch_cpu and libc10 only.
set(_torch_roots ${TRAINWRIGHT_TORCH_DIR})
if(NOT _torch_roots)
  trainwright_cache_dir(_cache)
  set(_torch_roots ${_cache}/libtorch-2.11.0)
endif()

find_path(TRAINWRIGHT_TORCH_ROOT NAMES torch/lib/libtorch_cpu.so lib/libtorch_cpu.so
          PATHS ${_torch_roots} NO_DEFAULT_PATH NO_CACHE)
if(NOT TRAINWRIGHT_TORCH_ROOT)
  message(FATAL_ERROR "LibTorch not found in ${_torch_roots}.\n"
    "Run scripts/fetch_libtorch.sh, or set TRAINWRIGHT_TORCH_DIR to a folder that holds torch/lib/libtorch_cpu.so, "
    "or configure with -DTRAINWRIGHT_TORCH=OFF for the torch-free tools alone.")
endif()
if(EXISTS ${TRAINWRIGHT_TORCH_ROOT}/torch/lib/libtorch_cpu.so)
  string(APPEND TRAINWRIGHT_TORCH_ROOT /torch)
endif()
set(TRAINWRIGHT_TORCH_LIB ${TRAINWRIGHT_TORCH_ROOT}/lib)
# Where engines look for it, built and installed.
cmake_path(NORMAL_PATH TRAINWRIGHT_TORCH_LIB OUTPUT_VARIABLE TRAINWRIGHT_TORCH_RUN_DIR)
message(STATUS "LibTorch: ${TRAINWRIGHT_TORCH_ROOT}")
include(LibTorchChecks)
trainwright_compare_torch_version(${TRAINWRIGHT_TORCH_ROOT} 2.11.0)
trainwright_require_torch_abi(${TRAINWRIGHT_TORCH_ROOT})

add_library(trainwright_torch INTERFACE)
# -idirafter: the wheel ships its own fmt and protobuf headers, which must not shadow the system's. Quoted: SHELL: is split at
# blanks.
target_compile_options(trainwright_torch INTERFACE
  "SHELL:-idirafter \"${TRAINWRIGHT_TORCH_ROOT}/include\""
  "SHELL:-idirafter \"${TRAINWRIGHT_TORCH_ROOT}/include/torch/csrc/api/include\""
  -Wno-unused-parameter -Wno-sign-compare -Wno-deprecated-declarations)
target_link_libraries(trainwright_torch INTERFACE
  ${TRAINWRIGHT_TORCH_LIB}/libtorch_cpu.so ${TRAINWRIGHT_TORCH_LIB}/libc10.so)
target_link_options(trainwright_torch INTERFACE -Wl,--allow-shlib-undefined)

# Our kernels share torch's pool of threads: one OpenMP runtime, the wheel's own copy where it ships one.
find_package(OpenMP REQUIRED COMPONENTS CXX)
add_library(trainwright_openmp INTERFACE)
if(EXISTS ${TRAINWRIGHT_TORCH_LIB}/libgomp.so.1)
  if(NOT TRAINWRIGHT_FUZZ)  # its targets take no kernels
    trainwright_require_torch_openmp(${TRAINWRIGHT_TORCH_LIB}/libgomp.so.1)
  endif()
  target_compile_options(trainwright_openmp INTERFACE ${OpenMP_CXX_FLAGS})
  target_link_libraries(trainwright_openmp INTERFACE ${TRAINWRIGHT_TORCH_LIB}/libgomp.so.1)
else()
  target_link_libraries(trainwright_openmp INTERFACE OpenMP::OpenMP_CXX)
endif()

# Gloo, which carries what ranks exchange, is inside libtorch_cpu, but the wheel leaves out its headers. Those of the system
# are enough for the one class that lib/dist/gloo_group.cc makes (tests/dist/gloo_layout_test.cc).
find_path(TRAINWRIGHT_GLOO_INCLUDE_DIR gloo/rendezvous/store.h)
if(NOT TRAINWRIGHT_GLOO_INCLUDE_DIR)
  message(FATAL_ERROR "The headers of gloo were not found (gloo/rendezvous/store.h).\n"
    "Install the package libgloo-dev (scripts/setup.sh does), or set TRAINWRIGHT_GLOO_INCLUDE_DIR to the folder that holds "
    "gloo/, or configure with -DTRAINWRIGHT_TORCH=OFF for the torch-free tools alone.")
endif()
