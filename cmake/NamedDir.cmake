# trainwright_named_dir(<variable> <description>): a folder that the user names, by -D<variable>=, or else by the environment's
# variable of this name. The environment is asked whenever CMake configures, so that what is set after a failure counts; its
# last folder stays while there is one, so that ninja may configure again in a shell that does not have the variable.
function(trainwright_named_dir variable description)
  set(${variable} "" CACHE PATH "${description}")
  set(of_environment ${variable}_OF_ENVIRONMENT)
  set(named "$ENV{${variable}}")
  if(NOT "${named}" STREQUAL "")
    get_filename_component(named "${named}" ABSOLUTE BASE_DIR ${CMAKE_SOURCE_DIR})
    set(${of_environment} "${named}" CACHE INTERNAL "Last value of the environment's ${variable}")
  elseif(NOT EXISTS "$CACHE{${of_environment}}")
    unset(${of_environment} CACHE)
  endif()
  if("$CACHE{${variable}}" STREQUAL "")
    set(${variable} "$CACHE{${of_environment}}" PARENT_SCOPE)
    return()
  endif()
  if(NOT "${named}" STREQUAL "" AND NOT "${named}" STREQUAL "$CACHE{${variable}}")
    message(WARNING "${variable} is ${named} in the environment, and $CACHE{${variable}} in this build folder, which counts; "
      "-D${variable}= has the environment's count.")
  endif()
  set(${variable} "$CACHE{${variable}}" PARENT_SCOPE)
endfunction()
