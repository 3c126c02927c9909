// Stands in for a library that loads and offers nothing: a driver, libtorch_cuda, or no plugin.
extern "C" int trainwright_test_library() {
  return 1;
}
