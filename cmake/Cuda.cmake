# The run-time plugin libtrainwright_cuda.so: nvcc compiles the kernels for compute capability 8.0 and 9.0, with PTX of the
# last for later GPUs. From the CUDA toolkit come nvcc, its headers and libcudart only; torch's CUDA libraries are the
# wheel's. Programs never link it.
if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(TRAINWRIGHT_NVCC nvcc PATHS /usr/local/cuda/bin REQUIRED)
  set(CMAKE_CUDA_COMPILER ${TRAINWRIGHT_NVCC})
endif()
set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
if(CCACHE_PROGRAM AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()
enable_language(CUDA)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc 13 has C++20
  set(CMAKE_CUDA_STANDARD_DEFAULT 17)
  set(CMAKE_CUDA17_STANDARD_COMPILE_OPTION -std=c++17)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
endif()
find_package(CUDAToolkit REQUIRED)

file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/lib/nn/*.cu)
# The plugin has hidden symbols but for its entries, so that nothing of it meets the program's.
add_library(trainwright_cuda MODULE ${cuda_sources} ${CMAKE_SOURCE_DIR}/lib/nn/cuda/plugin.cc)
# NCCL itself is in the wheel's libtorch_cuda or beside it; its header comes with the toolkit or with the package
# libnccl-dev. Without it ranks with a GPU each exchange through the host.
find_path(TRAINWRIGHT_NCCL_INCLUDE_DIR nccl.h PATHS ${CUDAToolkit_INCLUDE_DIRS})
if(TRAINWRIGHT_NCCL_INCLUDE_DIR)
  target_sources(trainwright_cuda PRIVATE ${CMAKE_SOURCE_DIR}/lib/dist/nccl_group.cc)
  set_source_files_properties(${CMAKE_SOURCE_DIR}/lib/dist/nccl_group.cc PROPERTIES
    COMPILE_DEFINITIONS USE_C10D_NCCL COMPILE_OPTIONS "-idirafter;${TRAINWRIGHT_NCCL_INCLUDE_DIR}")
else()
  message(STATUS "nccl.h not found: the CUDA plugin is built without NCCL")
endif()
set_target_properties(trainwright_cuda PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/libexec/trainwright
  CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
target_include_directories(trainwright_cuda PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
target_compile_options(trainwright_cuda PRIVATE
  "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra;-Werror=all-warnings>"
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers>
  "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-idirafter ${TRAINWRIGHT_TORCH_ROOT}/include>"
  "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-idirafter ${TRAINWRIGHT_TORCH_ROOT}/include/torch/csrc/api/include>")
target_link_libraries(trainwright_cuda PRIVATE CUDA::cudart ${TRAINWRIGHT_TORCH_LIB}/libc10_cuda.so
  ${TRAINWRIGHT_TORCH_LIB}/libtorch_cpu.so ${TRAINWRIGHT_TORCH_LIB}/libc10.so)
target_link_options(trainwright_cuda PRIVATE -Wl,--allow-shlib-undefined)
# libtorch_cuda and all it needs are in the process before the plugin: no search path of the build machine is wanted.
set_target_properties(trainwright_cuda PROPERTIES SKIP_BUILD_RPATH ON INSTALL_RPATH "")
install(TARGETS trainwright_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_BINDIR}/../libexec/trainwright)
