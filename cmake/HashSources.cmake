# Writes a C++ source that holds a hash of files, of their contents in this order, as a constant: cmake -DINPUTS=FILE|FILE|...
# -DOUTPUT=FILE -DNAME=kName -DHEADER=what/declares/it.h -P HashSources.cmake.
string(REPLACE "|" ";" inputs "${INPUTS}")
set(hashes "")
foreach(input IN LISTS inputs)
  file(SHA256 ${input} hash)
  string(APPEND hashes ${hash})
endforeach()
string(SHA256 hash "${hashes}")
string(SUBSTRING ${hash} 0 16 hash)
file(WRITE ${OUTPUT} "// Written by the build.
#include \"${HEADER}\"

namespace trainwright {
constinit const std::string_view ${NAME} = \"${hash}\";
}  // namespace trainwright
")
