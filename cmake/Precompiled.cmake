# Headers that nearly every file of a kind reads, precompiled once a kind. Each file must include what it uses all the
# same: the presets dev, tsan and fuzz compile without them.
set(trainwright_std_headers <algorithm> <cstdint> <filesystem> <functional> <map> <memory> <optional> <span> <string>
    <string_view> <unordered_map> <utility> <vector>)
set(trainwright_aten_headers <ATen/core/Tensor.h> <ATen/ops/empty.h> <ATen/ops/zeros.h> <c10/core/Device.h>)

# trainwright_add_precompiled(<kind> LIBRARY|PROGRAM [LIGHT] HEADERS <header>... USES <target>...): a kind of files, LIGHT if
# they are optimised lightly. Objects of programs differ from those of libraries in how their code is placed.
function(trainwright_add_precompiled kind)
  cmake_parse_arguments(PARSE_ARGV 1 pch "LIBRARY;PROGRAM;LIGHT" "" "HEADERS;USES")
  if(NOT TRAINWRIGHT_PCH)
    return()
  endif()
  set(source ${CMAKE_BINARY_DIR}/generated/precompiled/${kind}.cc)
  if(pch_PROGRAM)
    file(CONFIGURE OUTPUT ${source} CONTENT "int main() {}\n")
    add_executable(trainwright_precompiled_${kind} EXCLUDE_FROM_ALL ${source})
  else()
    file(CONFIGURE OUTPUT ${source} CONTENT "")
    add_library(trainwright_precompiled_${kind} OBJECT EXCLUDE_FROM_ALL ${source})
  endif()
  target_link_libraries(trainwright_precompiled_${kind} PRIVATE trainwright_settings ${pch_USES})
  if(pch_LIGHT)
    trainwright_optimize_lightly(trainwright_precompiled_${kind})
  endif()
  target_precompile_headers(trainwright_precompiled_${kind} PRIVATE ${pch_HEADERS})
endfunction()

# trainwright_precompile(<target> <kind>): compiles a target with the headers of a kind.
function(trainwright_precompile target kind)
  if(TARGET trainwright_precompiled_${kind})
    target_precompile_headers(${target} REUSE_FROM trainwright_precompiled_${kind})
  endif()
endfunction()

# trainwright_add_executable(<target> <kind> <source>... USES <target>...): an executable of which the objects,
# <target>_objects, are compiled as those of a library, of which kind they take the headers.
function(trainwright_add_executable target kind)
  cmake_parse_arguments(PARSE_ARGV 2 executable "" "" "USES")
  add_library(${target}_objects OBJECT ${executable_UNPARSED_ARGUMENTS})
  target_link_libraries(${target}_objects PRIVATE ${executable_USES})
  if(kind STREQUAL "torch_layer")
    target_link_libraries(${target}_objects PRIVATE trainwright_openmp)
  else()
    trainwright_optimize_lightly(${target}_objects)
  endif()
  trainwright_precompile(${target}_objects ${kind})
  add_executable(${target} $<TARGET_OBJECTS:${target}_objects>)
  target_link_libraries(${target} PRIVATE ${executable_USES})
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
endfunction()

trainwright_add_precompiled(layer LIBRARY HEADERS ${trainwright_std_headers} <nlohmann/json.hpp>
  USES nlohmann_json::nlohmann_json)
trainwright_add_precompiled(light_layer LIBRARY LIGHT HEADERS ${trainwright_std_headers} <nlohmann/json.hpp> <CLI/App.hpp>
  USES nlohmann_json::nlohmann_json CLI11::CLI11)
if(TRAINWRIGHT_TORCH)
  trainwright_add_precompiled(torch_layer LIBRARY
    HEADERS ${trainwright_std_headers} <nlohmann/json.hpp> ${trainwright_aten_headers}
    USES nlohmann_json::nlohmann_json trainwright_torch trainwright_openmp)
endif()
