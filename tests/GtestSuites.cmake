# trainwright_add_suites(<target> <prefix> [ALONE <regular expression of cases>] PROPERTIES <property> <value>...)
#
# One CTest test a suite of a GoogleTest program, <prefix>/<suite>: the cases of a suite share a process, so that LibTorch
# is loaded once for them. Cases that ALONE matches in whole have a test of their own, <prefix>/<suite>.<case>. The tests
# are listed when CTest runs, by list_suites.cmake. Each process writes a log of its cases for scripts/test_report.py:
# a test of CTest is several cases, and a process that dies must not hide any. Its main calls test::RunCases.
function(trainwright_add_suites target prefix)
  cmake_parse_arguments(PARSE_ARGV 2 suites "" "ALONE" "PROPERTIES")
  set(script ${CMAKE_BINARY_DIR}/tests/suites/${target}.cmake)
  file(GENERATE OUTPUT ${script} CONTENT "set(program \"$<TARGET_FILE:${target}>\")
set(prefix \"${prefix}\")
set(alone \"${suites_ALONE}\")
set(properties \"${suites_PROPERTIES}\")
set(folder \"${CMAKE_BINARY_DIR}/tests/suites/${prefix}\")
include(\"${PROJECT_SOURCE_DIR}/tests/list_suites.cmake\")
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${script})
endfunction()
