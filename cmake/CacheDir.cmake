# trainwright_cache_dir(VARIABLE): the folder that scripts/fetch_*.sh fill (cache_dir in scripts/common.sh). An
# empty variable counts as unset.
function(trainwright_cache_dir variable)
  if(NOT "$ENV{TRAINWRIGHT_LIBTORCH_CACHE}" STREQUAL "")
    set(folder $ENV{TRAINWRIGHT_LIBTORCH_CACHE})
  elseif(NOT "$ENV{XDG_CACHE_HOME}" STREQUAL "")
    set(folder $ENV{XDG_CACHE_HOME}/trainwright)
  else()
    set(folder $ENV{HOME}/.cache/trainwright)
  endif()
  set(${variable} ${folder} PARENT_SCOPE)
endfunction()
