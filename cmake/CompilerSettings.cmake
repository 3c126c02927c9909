# One place for the language level, warnings and sanitizers of every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)  # installed tools find libraries where they were built with them
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

# __FILE__ and debug information name files as the source tree does, wherever the tree lies; the second spelling is the one
# that ccache passes on.
file(RELATIVE_PATH _source_from_build ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR}/)
add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=;-ffile-prefix-map=${_source_from_build}=>")

# A clone at another path finds what this one compiled. What the user has set for ccache stays.
find_program(CCACHE_PROGRAM ccache)
find_program(ENV_PROGRAM env)
mark_as_advanced(CCACHE_PROGRAM ENV_PROGRAM)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  if(ENV_PROGRAM)
    set(_ccache_environment "")
    foreach(_setting BASEDIR=${CMAKE_SOURCE_DIR} NOHASHDIR=1
            SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime)
      string(REGEX MATCH "^[A-Z]+" _name ${_setting})
      if(NOT DEFINED ENV{CCACHE_${_name}})
        list(APPEND _ccache_environment CCACHE_${_setting})
      endif()
    endforeach()
    if(_ccache_environment)
      list(PREPEND CMAKE_CXX_COMPILER_LAUNCHER ${ENV_PROGRAM} ${_ccache_environment})
    endif()
  endif()
endif()

add_library(trainwright_settings INTERFACE)
target_include_directories(trainwright_settings INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
target_compile_options(trainwright_settings INTERFACE -Wall -Wextra -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 warns wrongly about std::string operator+ (GCC bug 105651).
  target_compile_options(trainwright_settings INTERFACE -Wno-restrict)
  if(TRAINWRIGHT_PCH)  # and from precompiled headers by these names, too
    target_compile_options(trainwright_settings INTERFACE -Wno-stringop-overflow -Wno-array-bounds)
  endif()
endif()
if(TRAINWRIGHT_WERROR)
  target_compile_options(trainwright_settings INTERFACE -Werror)
endif()
# By which the ranks of a run know that they are of one build (lib/base/build_id.h).
target_link_options(trainwright_settings INTERFACE -Wl,--build-id)
if(TRAINWRIGHT_SANITIZE)
  target_compile_options(trainwright_settings INTERFACE
    -fsanitize=${TRAINWRIGHT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(trainwright_settings INTERFACE -fsanitize=${TRAINWRIGHT_SANITIZE})
endif()

# trainwright_optimize_lightly(<target>): for code that takes longer to optimise than it ever runs. With the checks of the
# sanitizers in it, it takes twice as long to optimise as to compile.
function(trainwright_optimize_lightly target)
  if(TRAINWRIGHT_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  else()
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
endfunction()

# A linker that is much faster than the compiler's own, where the system has one.
set(TRAINWRIGHT_LINKER "AUTO" CACHE STRING
    "What -fuse-ld= takes: mold, lld, gold, bfd; AUTO: the first of mold and lld that is installed; DEFAULT: the compiler's own")
include(CheckLinkerFlag)
if(TRAINWRIGHT_LINKER STREQUAL "AUTO")
  foreach(_name MOLD LLD)
    string(TOLOWER ${_name} _flag)
    find_program(${_name}_PROGRAM NAMES ld.${_flag})
    mark_as_advanced(${_name}_PROGRAM)
    if(${_name}_PROGRAM AND NOT _linker)
      check_linker_flag(CXX -fuse-ld=${_flag} TRAINWRIGHT_LINKS_BY_${_name})  # g++ knows mold from 12.1 on
      if(TRAINWRIGHT_LINKS_BY_${_name})
        set(_linker ${_flag})
      endif()
    endif()
  endforeach()
elseif(NOT TRAINWRIGHT_LINKER STREQUAL "DEFAULT")
  set(_linker ${TRAINWRIGHT_LINKER})
  string(MAKE_C_IDENTIFIER TRAINWRIGHT_LINKS_BY_${_linker} _links)
  check_linker_flag(CXX -fuse-ld=${_linker} ${_links})
  if(NOT ${_links})
    unset(${_links} CACHE)  # the next try may have the linker
    message(FATAL_ERROR "${CMAKE_CXX_COMPILER} does not link with -fuse-ld=${_linker}.\n"
      "Install that linker, or configure with -DTRAINWRIGHT_LINKER=AUTO.")
  endif()
endif()
if(_linker)
  add_link_options(-fuse-ld=${_linker})
endif()
