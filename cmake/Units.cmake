# Several files compiled as one: what headers and templates cost is paid once. Names in unnamed namespaces must differ within
# such a unit; each file must include what it uses all the same: the presets dev, tsan and fuzz compile file by file. What
# is hot stays apart, so that nobody's edit elsewhere changes how it is inlined.
set(trainwright_layers_in_units bench checkpoint cli device dist documents embedding eval formats jinja loading machine memory model nn
    objective optim packing probe report retrieval run scaling score spec train)
set(trainwright_files_apart dist/gloo_group.cc documents/pretokenize_job.cc formats/frame_content.cc formats/id_codes.cc
    device/device.cc device/device_memory.cc)  # other headers' macros; hot; replaced by tests that emulate a GPU
set(trainwright_tests_in_units bench documents eval io memory model probe report run spec train)

# Likewise hot, or with options of their own.
set(trainwright_patterns_apart
    "/nn/(cpu|update|scan)/|/nn/linear/(block_matmul|block_operands|block_tile|few_rows_product|micro_kernel|thin_product|matmul|nf4[a-z_]*|int8[a-z_]*|quantized[a-z_]*)[.]cc|/nn/attention/(block_)?attention[.]cc|/nn/(fp8_|product_)?ops[.]cc|/nn/reduce[.]cc|/nn/loss/contrastive_")

# trainwright_gather_units(<variable> <name> <files>): puts units in the place of the sources that the variable names.
function(trainwright_gather_units variable name files)
  set(all ${${variable}})
  list(LENGTH all count)
  if(NOT TRAINWRIGHT_UNITS OR count LESS 2)
    return()
  endif()
  math(EXPR units "(${count} + ${files} - 1) / ${files}")
  set(gathered "")
  foreach(unit RANGE 1 ${units})
    math(EXPR begin "${count} * (${unit} - 1) / ${units}")
    math(EXPR size "${count} * ${unit} / ${units} - ${begin}")
    list(SUBLIST all ${begin} ${size} included)
    set(lines "")
    foreach(source IN LISTS included)
      file(RELATIVE_PATH source ${CMAKE_SOURCE_DIR} ${source})
      string(APPEND lines "#include \"${source}\"\n")
    endforeach()
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/units/${name}_${unit}.cc CONTENT "${lines}")
    list(APPEND gathered ${CMAKE_BINARY_DIR}/generated/units/${name}_${unit}.cc)
  endforeach()
  set(${variable} ${gathered} PARENT_SCOPE)
endfunction()
