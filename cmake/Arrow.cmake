# The run-time plugin libtrainwright_parquet.so, which alone knows Arrow; programs never link it. Without Arrow it is left
# out, and so it is of builds with sanitizers, whose containers must not meet those of a library without.
if(TRAINWRIGHT_PARQUET STREQUAL "OFF" OR (TRAINWRIGHT_SANITIZE AND TRAINWRIGHT_PARQUET STREQUAL "AUTO"))
  return()
endif()
set(_arrow_roots ${TRAINWRIGHT_ARROW_DIR})
if(NOT _arrow_roots)
  trainwright_cache_dir(_cache)
  set(_arrow_roots ${_cache}/arrow-26.0.1)
endif()
find_path(TRAINWRIGHT_ARROW_ROOT NAMES libparquet.so.2600 PATHS ${_arrow_roots} NO_DEFAULT_PATH NO_CACHE)
if(NOT TRAINWRIGHT_ARROW_ROOT)
  if(NOT TRAINWRIGHT_PARQUET STREQUAL "AUTO" OR TRAINWRIGHT_ARROW_DIR)
    message(FATAL_ERROR "libparquet.so.2600 not found in ${_arrow_roots}.\n"
      "Run scripts/fetch_arrow.sh, or set TRAINWRIGHT_ARROW_DIR, or configure with -DTRAINWRIGHT_PARQUET=OFF.")
  endif()
  message(STATUS "Arrow: not found; pretokenize will not read parquet files (scripts/fetch_arrow.sh)")
  return()
endif()
message(STATUS "Arrow: ${TRAINWRIGHT_ARROW_ROOT}")

add_library(trainwright_parquet MODULE ${CMAKE_SOURCE_DIR}/lib/io/parquet/plugin.cc)
set_target_properties(trainwright_parquet PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/libexec/trainwright
  CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON INSTALL_RPATH "${TRAINWRIGHT_ARROW_ROOT}"
  BUILD_WITH_INSTALL_RPATH ON)
target_include_directories(trainwright_parquet PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
target_include_directories(trainwright_parquet SYSTEM PRIVATE ${TRAINWRIGHT_ARROW_ROOT}/include)
target_compile_options(trainwright_parquet PRIVATE -Wall -Wextra -Wno-missing-field-initializers)
target_link_libraries(trainwright_parquet PRIVATE
  ${TRAINWRIGHT_ARROW_ROOT}/libparquet.so.2600 ${TRAINWRIGHT_ARROW_ROOT}/libarrow.so.2600)
install(TARGETS trainwright_parquet LIBRARY DESTINATION ${CMAKE_INSTALL_BINDIR}/../libexec/trainwright)
