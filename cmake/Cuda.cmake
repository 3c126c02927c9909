# The run-time plugins libtrainwright_cuda.so and libtrainwright_nccl.so: nvcc compiles the kernels for compute capability
# 7.5, 8.0 and 9.0, with PTX of the last for later GPUs. From the CUDA toolkit come nvcc, its headers and libcudart only;
# torch's CUDA libraries are the wheel's. Programs never link them.
if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(TRAINWRIGHT_NVCC nvcc PATHS /usr/local/cuda/bin REQUIRED)
  set(CMAKE_CUDA_COMPILER ${TRAINWRIGHT_NVCC})
endif()
set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 90)
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
# trainwright_add_cuda_plugin(<target> <source>...): a plugin with hidden symbols but for its entries, so that nothing of it
# meets the program's. All that it calls is in the libraries that it names; what those need may be absent where it is built.
function(trainwright_add_cuda_plugin target)
  add_library(${target} MODULE ${ARGN})
  set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/libexec/trainwright
    CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra;-Werror=all-warnings>"
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers>
    "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-idirafter \"${TRAINWRIGHT_TORCH_ROOT}/include\">"
    "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-idirafter \"${TRAINWRIGHT_TORCH_ROOT}/include/torch/csrc/api/include\">")
  target_link_libraries(${target} PRIVATE CUDA::cudart ${TRAINWRIGHT_TORCH_LIB}/libc10_cuda.so
    ${TRAINWRIGHT_TORCH_LIB}/libtorch_cpu.so ${TRAINWRIGHT_TORCH_LIB}/libc10.so)
  target_link_options(${target} PRIVATE -Wl,-z,defs -Wl,--allow-shlib-undefined)
  # libtorch_cuda and all it needs are in the process before the plugin: no search path of the build machine is wanted, nor
  # the place that CMake would keep for one, whose empty entries name the current folder.
  set_target_properties(${target} PROPERTIES SKIP_BUILD_RPATH ON INSTALL_RPATH "" INSTALL_RPATH_USE_LINK_PATH OFF)
  install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_BINDIR}/../libexec/trainwright)
endfunction()

# Of torch's CUDA libraries the kernels need libc10_cuda alone, which has no needs of its own: it loads without a driver.
file(GLOB cuda_plugin_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/lib/nn/cuda/*.cc ${CMAKE_SOURCE_DIR}/lib/device/cuda_graph/*.cc)
trainwright_add_cuda_plugin(trainwright_cuda ${cuda_sources} ${cuda_plugin_sources} ${CMAKE_SOURCE_DIR}/lib/nn/linear/nf4_books.cc)

# NCCL itself is beside the wheel's libtorch_cuda; its header comes with the toolkit or with the package libnccl-dev. Without
# it ranks with a GPU each exchange through the host.
find_path(TRAINWRIGHT_NCCL_INCLUDE_DIR nccl.h PATHS ${CUDAToolkit_INCLUDE_DIRS})
if(TRAINWRIGHT_NCCL_INCLUDE_DIR)
  trainwright_add_cuda_plugin(trainwright_nccl ${CMAKE_SOURCE_DIR}/lib/dist/nccl_group.cc)
  target_compile_definitions(trainwright_nccl PRIVATE USE_C10D_NCCL)
  target_compile_options(trainwright_nccl PRIVATE -idirafter ${TRAINWRIGHT_NCCL_INCLUDE_DIR})
  target_link_libraries(trainwright_nccl PRIVATE ${TRAINWRIGHT_TORCH_LIB}/libtorch_cuda.so)
  add_dependencies(trainwright_cuda trainwright_nccl)
else()
  message(STATUS "nccl.h not found: the CUDA plugin is built without NCCL")
endif()
# CUPTI, which libtorch_cpu has in the process anyway, records what the GPU does for --profile. Without its header train
# refuses --profile on a GPU.
find_path(TRAINWRIGHT_CUPTI_INCLUDE_DIR cupti.h PATHS ${CUDAToolkit_INCLUDE_DIRS}
  ${CUDAToolkit_LIBRARY_ROOT}/extras/CUPTI/include)
find_library(TRAINWRIGHT_CUPTI_LIBRARY cupti PATHS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT}/lib
  ${CUDAToolkit_LIBRARY_ROOT}/lib64 ${CUDAToolkit_LIBRARY_ROOT}/extras/CUPTI/lib64)
if(TRAINWRIGHT_CUPTI_INCLUDE_DIR AND TRAINWRIGHT_CUPTI_LIBRARY)
  target_sources(trainwright_cuda PRIVATE ${CMAKE_SOURCE_DIR}/lib/device/cupti/plugin.cc)
  target_include_directories(trainwright_cuda PRIVATE ${TRAINWRIGHT_CUPTI_INCLUDE_DIR})
  target_link_libraries(trainwright_cuda PRIVATE ${TRAINWRIGHT_CUPTI_LIBRARY})
else()
  message(STATUS "CUPTI not found: train refuses --profile on a GPU")
endif()
