# Makes one static library a layer (target trainwright_<layer>) from the table in lib/LAYERS.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/lib/LAYERS)

# Libraries outside the project that a layer uses; linked publicly only where a header shows them.
set(trainwright_base_uses PRIVATE PkgConfig::XXHASH OpenSSL::Crypto PUBLIC Threads::Threads)
set(trainwright_io_uses PRIVATE PkgConfig::ZSTD ZLIB::ZLIB)
set(trainwright_formats_uses PRIVATE PkgConfig::ZSTD ZLIB::ZLIB ${TRAINWRIGHT_YAML} PUBLIC nlohmann_json::nlohmann_json)
set(trainwright_codec_uses PRIVATE PkgConfig::XXHASH)
set(trainwright_tok_uses PRIVATE trainwright_sentencepiece simdjson::simdjson nlohmann_json::nlohmann_json)
set(trainwright_dist_uses PRIVATE ${CMAKE_DL_LIBS})
set(trainwright_model_uses PRIVATE nlohmann_json::nlohmann_json)
set(trainwright_embedding_uses PUBLIC nlohmann_json::nlohmann_json)
set(trainwright_probe_uses PUBLIC nlohmann_json::nlohmann_json)
set(trainwright_report_uses PUBLIC nlohmann_json::nlohmann_json)
set(trainwright_bench_uses PRIVATE ${TRAINWRIGHT_YAML} PUBLIC nlohmann_json::nlohmann_json)
set(trainwright_cli_uses PRIVATE ${TRAINWRIGHT_YAML} PUBLIC CLI11::CLI11 nlohmann_json::nlohmann_json)
set(trainwright_documents_uses PRIVATE simdjson::simdjson)
set(trainwright_retrieval_uses PUBLIC nlohmann_json::nlohmann_json)
set(trainwright_packing_uses PRIVATE PkgConfig::ZSTD)
set(trainwright_machine_uses PUBLIC nlohmann_json::nlohmann_json)
set(trainwright_memory_uses PUBLIC nlohmann_json::nlohmann_json)
set(trainwright_spec_uses PUBLIC nlohmann_json::nlohmann_json)
set(trainwright_scaling_uses PUBLIC nlohmann_json::nlohmann_json)
set(trainwright_profile_uses PUBLIC nlohmann_json::nlohmann_json)
set(trainwright_run_uses PUBLIC nlohmann_json::nlohmann_json)
set(trainwright_checkpoint_uses PUBLIC nlohmann_json::nlohmann_json)

# Layers that take longer to optimise than they ever run: what is hot on their way is in others.
set(trainwright_light_layers cli spec run checkpoint)

# Without these, loops with exp or a comparison of floats are not vectorised (measured: five times slower). They
# change no value: only traps and errno, which nothing reads.
file(GLOB kernel_sources ${CMAKE_SOURCE_DIR}/lib/nn/cpu/kernels_*.cc)
set_source_files_properties(${kernel_sources} PROPERTIES COMPILE_OPTIONS "-fno-trapping-math;-fno-math-errno")
# These have the same bits on every instruction set: none may contract a product with a sum.
file(GLOB same_bits_sources ${CMAKE_SOURCE_DIR}/lib/nn/update/*.cc)
set_source_files_properties(${same_bits_sources} PROPERTIES COMPILE_OPTIONS
  "-fno-trapping-math;-fno-math-errno;-ffp-contract=off")
set(quantized_source ${CMAKE_SOURCE_DIR}/lib/nn/linear/quantized_thin_product.cc)
set_source_files_properties(${quantized_source} PROPERTIES COMPILE_OPTIONS "-ffp-contract=off")

# g++ 12 takes the undefined values of its own AVX-512 headers for mistakes (GCC bug 105593).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  set_source_files_properties(${CMAKE_SOURCE_DIR}/lib/nn/linear/nf4_block.cc ${CMAKE_SOURCE_DIR}/lib/nn/linear/thin_product.cc
    PROPERTIES COMPILE_OPTIONS "-Wno-uninitialized;-Wno-maybe-uninitialized")
  set_source_files_properties(${quantized_source} PROPERTIES COMPILE_OPTIONS
    "-ffp-contract=off;-Wno-uninitialized;-Wno-maybe-uninitialized")
endif()
# c10d's header declares the Gloo group only to those who say that LibTorch has it.
set_source_files_properties(${CMAKE_SOURCE_DIR}/lib/dist/gloo_group.cc PROPERTIES
  COMPILE_DEFINITIONS USE_C10D_GLOO COMPILE_OPTIONS "-idirafter;${TRAINWRIGHT_GLOO_INCLUDE_DIR}" SKIP_PRECOMPILE_HEADERS ON)

# With options of their own these cannot share precompiled headers.
set_source_files_properties(${kernel_sources} ${same_bits_sources} ${quantized_source} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)

# trainwright_embed_text(<text> <source> <header>): a C++ source with the text of a file, written by the build. It is named
# as the file: k<Name>Text in <header>, words apart by - or _.
function(trainwright_embed_text text source header)
  get_filename_component(name ${text} NAME_WE)
  string(REGEX REPLACE "[-_]" ";" words ${name})
  set(constant k)
  foreach(word IN LISTS words)
    string(SUBSTRING ${word} 0 1 initial)
    string(SUBSTRING ${word} 1 -1 rest)
    string(TOUPPER ${initial} initial)
    string(APPEND constant ${initial}${rest})
  endforeach()
  add_custom_command(OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DINPUT=${text} -DOUTPUT=${source} -DNAME=${constant}Text -DHEADER=${header}
            -P ${CMAKE_SOURCE_DIR}/cmake/EmbedText.cmake
    DEPENDS ${text} ${CMAKE_SOURCE_DIR}/cmake/EmbedText.cmake VERBATIM)
endfunction()

# A source with kKernelSources, a hash of what computes GEMMs on a CPU, measures the ways to and chooses one: what is remembered
# of older kernels is not true of newer ones (lib/probe/cpu_gemm_cache.h).
set(kernel_hash_source ${CMAKE_BINARY_DIR}/generated/probe/kernel_sources.cc)
file(GLOB hashed_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/lib/nn/linear/*.cc ${CMAKE_SOURCE_DIR}/lib/nn/linear/*.h
     ${CMAKE_SOURCE_DIR}/lib/probe/cpu_gemm_*.cc ${CMAKE_SOURCE_DIR}/lib/probe/cpu_gemm_*.h)
string(JOIN "|" hashed_inputs ${hashed_sources})
add_custom_command(OUTPUT ${kernel_hash_source}
  COMMAND ${CMAKE_COMMAND} -DINPUTS=${hashed_inputs} -DOUTPUT=${kernel_hash_source} -DNAME=kKernelSources
          -DHEADER=lib/probe/kernel_sources.h -P ${CMAKE_SOURCE_DIR}/cmake/HashSources.cmake
  DEPENDS ${hashed_sources} ${CMAKE_SOURCE_DIR}/cmake/HashSources.cmake VERBATIM)

function(trainwright_add_layers)
  set(torch_layers "")
  set(layers "")
  file(STRINGS ${CMAKE_SOURCE_DIR}/lib/LAYERS lines REGEX "^[a-z]")
  foreach(line IN LISTS lines)
    string(REGEX MATCH "^([a-z]+) *(torch)? *:(.*)$" _ "${line}")
    set(layer ${CMAKE_MATCH_1})
    set(torch "${CMAKE_MATCH_2}")
    string(STRIP "${CMAKE_MATCH_3}" depends)
    string(REPLACE " " ";" depends "${depends}")
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/lib/${layer}/*.cc)
    list(FILTER sources EXCLUDE REGEX "/nn/cuda/|/(plugin|nccl_group)\\.cc$")  # of what is loaded at run time
    if(torch AND NOT TRAINWRIGHT_TORCH)
      continue()
    endif()
    if(NOT sources)
      message(WARNING "layer ${layer} has no sources yet")
      add_library(trainwright_${layer} INTERFACE)
      foreach(dep IN LISTS depends)
        target_link_libraries(trainwright_${layer} INTERFACE trainwright_${dep})
      endforeach()
      target_link_libraries(trainwright_${layer} INTERFACE trainwright_settings)
      continue()
    endif()
    if(layer IN_LIST trainwright_layers_in_units)
      set(apart ${sources})
      list(TRANSFORM trainwright_files_apart PREPEND ${CMAKE_SOURCE_DIR}/lib/ OUTPUT_VARIABLE named_apart)
      list(REMOVE_ITEM sources ${named_apart})
      list(FILTER sources EXCLUDE REGEX ${trainwright_patterns_apart})
      list(REMOVE_ITEM apart ${sources})
      trainwright_gather_units(sources ${layer} 7)
      list(APPEND sources ${apart})
    endif()
    # Python that the layer writes into folders: lib/<layer>/python_files.h declares its texts.
    file(GLOB python_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/lib/${layer}/python/*.py)
    foreach(python_file IN LISTS python_files)
      get_filename_component(name ${python_file} NAME_WE)
      set(source ${CMAKE_BINARY_DIR}/generated/python/${name}_text.cc)
      trainwright_embed_text(${python_file} ${source} lib/${layer}/python_files.h)
      list(APPEND sources ${source})
    endforeach()
    if(layer STREQUAL "probe")
      list(APPEND sources ${kernel_hash_source})
    endif()
    add_library(trainwright_${layer} STATIC ${sources})
    target_link_libraries(trainwright_${layer} PUBLIC trainwright_settings)
    foreach(dep IN LISTS depends)
      target_link_libraries(trainwright_${layer} PUBLIC trainwright_${dep})
    endforeach()
    if(trainwright_${layer}_uses)
      target_link_libraries(trainwright_${layer} ${trainwright_${layer}_uses})
    endif()
    if(torch)
      # at::parallel_for is a plain loop where it is compiled without OpenMP.
      target_link_libraries(trainwright_${layer} PUBLIC trainwright_torch PRIVATE trainwright_openmp)
      list(APPEND torch_layers ${layer})
    endif()
    if(torch)
      trainwright_precompile(trainwright_${layer} torch_layer)
    elseif(layer IN_LIST trainwright_light_layers)
      trainwright_optimize_lightly(trainwright_${layer})
      trainwright_precompile(trainwright_${layer} light_layer)
    else()
      trainwright_precompile(trainwright_${layer} layer)
    endif()
    list(APPEND layers ${layer})
  endforeach()
  set(TRAINWRIGHT_LAYERS ${layers} PARENT_SCOPE)
  set(TRAINWRIGHT_TORCH_LAYERS ${torch_layers} PARENT_SCOPE)
endfunction()
