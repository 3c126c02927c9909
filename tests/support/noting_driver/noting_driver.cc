// A driver of NVIDIA without a GPU: what loads it is told of by a line in the file $DRIVER_NOTES with the
// variables that torch's allocator of GPU memory reads while it is loaded, which is after the driver.
#include <cstdio>
#include <cstdlib>

namespace {

const char* Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

[[gnu::constructor]] void Note() {
  std::FILE* const notes = std::fopen(Variable("DRIVER_NOTES"), "a");
  if (notes == nullptr) return;
  std::fprintf(notes, "%s|%s\n", Variable("PYTORCH_CUDA_ALLOC_CONF"), Variable("PYTORCH_ALLOC_CONF"));
  std::fclose(notes);
}

}  // namespace
