# What else the linker would say after the whole build, or nobody.
include(CheckCXXSourceCompiles)

# trainwright_compare_torch_version(<root> <tested>): warns of another LibTorch than the tested one; it may do all the same.
function(trainwright_compare_torch_version root tested)
  set(version "")
  foreach(header torch/headeronly/version.h torch/csrc/api/include/torch/version.h)  # by release
    if(NOT version AND EXISTS ${root}/include/${header})
      file(STRINGS ${root}/include/${header} lines REGEX "^#define TORCH_VERSION_(MAJOR|MINOR|PATCH) +[0-9]+")
      list(TRANSFORM lines REPLACE "^.* ([0-9]+).*$" "\\1")
      list(JOIN lines "." version)
    endif()
  endforeach()
  if(NOT version)
    message(WARNING "The version of LibTorch in ${root} is not known; Trainwright is tested with ${tested} alone.")
  elseif(NOT version STREQUAL tested)
    message(WARNING "LibTorch in ${root} is ${version}; Trainwright is tested with ${tested} alone. Another may not compile, or "
      "make groups of processes otherwise than lib/dist assumes: the tests dist/GlooLayoutTest compare that.")
  endif()
endfunction()

# _trainwright_forget_if_changed(<variable> <text>...): has a check made again whose answer is of another compiler or library.
macro(_trainwright_forget_if_changed variable)
  if(NOT "$CACHE{${variable}_OF}" STREQUAL "${ARGN}")
    unset(${variable} CACHE)
    set(${variable}_OF "${ARGN}" CACHE INTERNAL "What ${variable} is of")
  endif()
endmacro()

# trainwright_require_torch_abi(<root>): refuses a LibTorch whose functions of std::string have other names than those that
# this compiler calls.
function(trainwright_require_torch_abi root)
  set(library ${root}/lib/libc10.so)
  _trainwright_forget_if_changed(TRAINWRIGHT_C10_LINKS ${library} ${CMAKE_CXX_COMPILER} ${CMAKE_CXX_FLAGS})
  set(CMAKE_REQUIRED_INCLUDES ${root}/include)
  set(CMAKE_REQUIRED_LIBRARIES ${library})
  set(CMAKE_REQUIRED_LINK_OPTIONS -Wl,--allow-shlib-undefined)
  check_cxx_source_compiles([[
#include <c10/util/Exception.h>
int main(int argc, char**) {
  TORCH_CHECK(argc > 0, argc, " arguments");
  return 0;
}]] TRAINWRIGHT_C10_LINKS)
  if(NOT TRAINWRIGHT_C10_LINKS)
    unset(TRAINWRIGHT_C10_LINKS CACHE)
    message(FATAL_ERROR "A small program with ${library} and its headers does not compile and link with ${CMAKE_CXX_COMPILER}.\n"
      "Wheels of torch before 2.7 have the older ABI of std::string, which g++ does not use. Run scripts/fetch_libtorch.sh, "
      "or name another LibTorch by -DTRAINWRIGHT_TORCH_DIR=. What the compiler says is in CMakeFiles/CMakeError.log or "
      "CMakeConfigureLog.yaml of the build folder.")
  endif()
endfunction()

# trainwright_require_torch_openmp(<library>): refuses a compiler whose OpenMP needs another runtime than LibTorch's.
function(trainwright_require_torch_openmp library)
  _trainwright_forget_if_changed(TRAINWRIGHT_OPENMP_LINKS ${library} ${CMAKE_CXX_COMPILER} ${OpenMP_CXX_FLAGS})
  separate_arguments(CMAKE_REQUIRED_DEFINITIONS UNIX_COMMAND "${OpenMP_CXX_FLAGS}")  # for the compiler alone, not the linker
  set(CMAKE_REQUIRED_LIBRARIES ${library})
  check_cxx_source_compiles([[
int main() {
  int threads = 0;
#pragma omp parallel reduction(+ : threads)
  threads += 1;
  return threads == 0;
}]] TRAINWRIGHT_OPENMP_LINKS)
  if(NOT TRAINWRIGHT_OPENMP_LINKS)
    unset(TRAINWRIGHT_OPENMP_LINKS CACHE)
    message(FATAL_ERROR "What ${CMAKE_CXX_COMPILER} makes of OpenMP does not link with LibTorch's ${library}.\n"
      "Build with g++ 12 or later, or configure with -DTRAINWRIGHT_TORCH=OFF for the torch-free tools alone.")
  endif()
endfunction()
