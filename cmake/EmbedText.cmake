# Writes a C++ source that holds a text file as a constant: cmake -DINPUT=FILE -DOUTPUT=FILE -DNAME=kName
# -DHEADER=what/declares/it.h -P EmbedText.cmake. The text goes into a raw string literal, which GCC and Clang take of any length.
file(READ ${INPUT} text)
string(FIND "${text}" ")text\"" end_of_literal)
if(NOT end_of_literal EQUAL -1)
  message(FATAL_ERROR "${INPUT}: holds )text\", which ends the literal")
endif()
get_filename_component(file_name ${INPUT} NAME)
file(WRITE ${OUTPUT} "// Written by the build from ${file_name}.
#include \"${HEADER}\"

namespace trainwright {
constinit const std::string_view ${NAME} = R\"text(${text})text\";
}  // namespace trainwright
")
