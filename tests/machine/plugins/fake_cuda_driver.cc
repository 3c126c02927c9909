// A CUDA driver of version FAKE_VERSION that starts with FAKE_INIT and shows FAKE_COUNT GPUs. Declared here
// as cuda.h declares it, and independently of lib/machine/cuda_driver.cc.
#include <cstddef>
#include <cstring>

extern "C" {
int cuInit(unsigned int) {
  return FAKE_INIT;
}
int cuDriverGetVersion(int* version) {
  *version = FAKE_VERSION;
  return 0;
}
int cuGetErrorName(int error, const char** name) {
  *name = error == 100 ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR_UNKNOWN";
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = FAKE_COUNT;
  return 0;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = 70 + ordinal;
  return 0;
}
int cuDeviceGetName(char* name, int length, int) {
  std::strncpy(name, "NVIDIA H200", static_cast<size_t>(length));
  return 0;
}
int cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
  for (int i = 0; i < 16; ++i) uuid[i] = static_cast<unsigned char>(i + 1 + device - 70);
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 16 ? 132 : attribute == 75 ? 9 : attribute == 76 ? 0 : -1;
  return 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = 150754820096;
  return 0;
}
}
