# How many compilers fit into memory, whatever started ninja, which by itself runs as many as there are processors and two more.
# The number of the scripts, or -j, may be less. The user's own pool or CMAKE_BUILD_PARALLEL_LEVEL counts instead.
if(CMAKE_GENERATOR MATCHES "Ninja" AND NOT DEFINED CMAKE_JOB_POOL_COMPILE AND NOT DEFINED ENV{CMAKE_BUILD_PARALLEL_LEVEL})
  execute_process(COMMAND bash -c "source scripts/common.sh; compilers_in_memory MemTotal"
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_VARIABLE _compilers OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(_compilers MATCHES "^[1-9][0-9]*$")
    list(APPEND CMAKE_JOB_POOLS trainwright_compilers=${_compilers})
    set(CMAKE_JOB_POOL_COMPILE trainwright_compilers)
  endif()
endif()
