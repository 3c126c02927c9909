#include "lib/io/process_memory.h"

#include <malloc.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <string>

namespace trainwright {
namespace {

/// The kB value of "<name>: 123 kB" in a file of /proc.
std::optional<int64_t> ReadKilobytes(const char* path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name + ":")) return std::stoll(line.substr(name.size() + 1)) * 1024;
  }
  return std::nullopt;
}

/// The bytes that a cgroup's processes hold, page cache apart.
std::optional<int64_t> ReadCgroupUse() {
  std::ifstream file("/sys/fs/cgroup/memory.stat");
  std::string name;
  for (int64_t value = 0; file >> name >> value;) {
    if (name == "anon") return value;
  }
  return std::nullopt;
}

/// A file that holds one number; nullopt for another content ("max") or no file.
std::optional<int64_t> ReadNumber(const char* path) {
  std::ifstream file(path);
  std::string text;
  file >> text;
  int64_t number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || status != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

int64_t ResidentBytes() {
  return ReadKilobytes("/proc/self/status", "VmRSS").value_or(0);
}

int64_t PeakResidentBytes() {
  return ReadKilobytes("/proc/self/status", "VmHWM").value_or(0);
}

int64_t ResidentAnonymousBytes() {
  return ReadKilobytes("/proc/self/status", "RssAnon").value_or(0);
}

int64_t ResidentFileBytes() {
  return ReadKilobytes("/proc/self/status", "RssFile").value_or(0) +
         ReadKilobytes("/proc/self/status", "RssShmem").value_or(0);
}

int64_t FreeHeapBytes() {
  return static_cast<int64_t>(mallinfo2().fordblks);
}

void ReturnFreeHeap() {
  malloc_trim(0);
}

int64_t PrivateWritableBytes() {
  return ReadKilobytes("/proc/self/status", "VmData").value_or(0);
}

int64_t AvailableMemoryBytes() {
  const std::optional<int64_t> machine = ReadKilobytes("/proc/meminfo", "MemAvailable");
  const std::optional<int64_t> limit = ReadNumber("/sys/fs/cgroup/memory.max"), used = ReadCgroupUse();
  if (!limit || !used) return machine.value_or(0);
  const int64_t left = std::max<int64_t>(1, *limit - *used);
  return machine ? std::min(*machine, left) : left;
}

}  // namespace trainwright
