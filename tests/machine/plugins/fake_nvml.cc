// A management library of two GPUs: the first tells everything, the second nothing but its name. FAKE_INIT is
// what starting it gives. Declared here as nvml.h declares it, and independently of lib/machine/nvml.cc.
#include <cstdio>
#include <cstring>

namespace {

struct Memory {
  unsigned long long total, free, used;
};
struct Utilization {
  unsigned int gpu, memory;
};
struct Process {
  unsigned int pid;
  unsigned long long used_gpu_memory;
  unsigned int gpu_instance_id, compute_instance_id;
};
struct ProcessUse {
  unsigned int pid;
  unsigned long long time_stamp;
  unsigned int sm, memory, encoder, decoder;
};
using Device = struct nvmlDevice_st*;
constexpr int kInvalid = 2, kNotSupported = 3, kNotFound = 6, kInsufficientSize = 7;

char first_gpu, second_gpu;
Device First() {
  return reinterpret_cast<Device>(&first_gpu);
}

int Text(const char* text, char* to, unsigned int length) {
  if (length < std::strlen(text) + 1) return kInsufficientSize;
  std::strcpy(to, text);
  return 0;
}
template <typename Value>
int Of(Device device, Value value, Value* to) {
  if (device != First()) return kNotSupported;
  *to = value;
  return 0;
}

}  // namespace

extern "C" {
int nvmlInit_v2() {
  return FAKE_INIT;
}
int nvmlShutdown() {
  return 0;
}
const char* nvmlErrorString(int) {
  return "Driver/library version mismatch";
}
int nvmlSystemGetDriverVersion(char* version, unsigned int length) {
  return Text("580.65.06", version, length);
}
int nvmlSystemGetCudaDriverVersion(int* version) {
  *version = 13000;
  return 0;
}
int nvmlSystemGetProcessName(unsigned int pid, char* name, unsigned int length) {
  return pid == 4242 ? Text("/usr/bin/python3", name, length) : kInvalid;
}
int nvmlDeviceGetCount_v2(unsigned int* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, Device* device) {
  *device = index == 0 ? First() : reinterpret_cast<Device>(&second_gpu);
  return 0;
}
int nvmlDeviceGetName(Device device, char* name, unsigned int length) {
  return Text(device == First() ? "NVIDIA H200" : "NVIDIA Silent", name, length);
}
int nvmlDeviceGetUUID(Device device, char* uuid, unsigned int length) {
  return device == First() ? Text("GPU-01020304-0506-0708-090a-0b0c0d0e0f10", uuid, length) : kNotSupported;
}
int nvmlDeviceGetCudaComputeCapability(Device device, int* major, int* minor) {
  return Of(device, 9, major) + Of(device, 0, minor);
}
int nvmlDeviceGetMemoryInfo(Device device, Memory* memory) {
  return Of(device, Memory{150754820096, 150000000000, 754820096}, memory);
}
int nvmlDeviceGetEccMode(Device device, int* current, int* pending) {
  return Of(device, 1, current) + Of(device, 0, pending);
}
int nvmlDeviceGetMigMode(Device device, unsigned int* current, unsigned int* pending) {
  return Of(device, 0u, current) + Of(device, 1u, pending);
}
int nvmlDeviceGetClockInfo(Device device, int type, unsigned int* clock) {
  return Of(device, type == 1 ? 345u : type == 2 ? 3201u : 1u, clock);
}
int nvmlDeviceGetMaxClockInfo(Device device, int type, unsigned int* clock) {
  return Of(device, type == 1 ? 1980u : type == 2 ? 3202u : 1u, clock);
}
int nvmlDeviceGetPowerManagementLimit(Device device, unsigned int* milliwatts) {
  return Of(device, 700000u, milliwatts);
}
int nvmlDeviceGetPowerUsage(Device device, unsigned int* milliwatts) {
  return Of(device, 75500u, milliwatts);
}
int nvmlDeviceGetTemperature(Device device, int, unsigned int* celsius) {
  return Of(device, 31u, celsius);
}
int nvmlDeviceGetUtilizationRates(Device device, Utilization* utilization) {
  return Of(device, Utilization{97, 41}, utilization);
}
int nvmlDeviceGetCurrentClocksThrottleReasons(Device device, unsigned long long* reasons) {
  return Of(device, 0x44ull, reasons);
}
int nvmlDeviceGetComputeMode(Device device, int* mode) {
  return Of(device, FAKE_COMPUTE_MODE, mode);
}
/// 65 processes, one more than a first guess would hold.
int nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned int* count, Process* processes) {
  if (device != First()) return kNotSupported;
  const unsigned int room = *count;
  *count = 65;
  if (room < 65) return kInsufficientSize;
  for (unsigned int i = 0; i < 65; ++i) processes[i] = {4242 + i, (1ull << 30) + i, 0xFFFFFFFF, 0xFFFFFFFF};
  processes[64].used_gpu_memory = ~0ull;
  return 0;
}
/// Two samples of the first process and one of another's, all before time 3000; none after.
int nvmlDeviceGetProcessUtilization(Device device, ProcessUse* uses, unsigned int* count,
                                    unsigned long long last_seen) {
  if (device != First()) return kNotSupported;
  if (last_seen >= 3000) return kNotFound;
  const unsigned int room = *count;
  *count = 3;
  if (uses == nullptr || room < 3) return kInsufficientSize;
  uses[0] = {4242, 1000, 11, 7, 0, 0};
  uses[1] = {4242, 3000, 88, 40, 0, 0};
  uses[2] = {1, 2000, 5, 5, 0, 0};
  return 0;
}
}
