/// What belongs to the whole process and a library could change, as a table that two moments are compared by.
#pragma once

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/CPUAllocator.h>
#include <sys/resource.h>
#include <unistd.h>

#include <clocale>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <new>
#include <string>

namespace trainwright::test {

/// \returns name -> value
inline std::map<std::string, std::string> DescribeProcess() {
  const auto text_of = [](auto* pointer) { return std::to_string(reinterpret_cast<uintptr_t>(pointer)); };
  std::map<std::string, std::string> state = {
      {"threads", std::to_string(at::get_num_threads())},
      {"allocator of tensors", text_of(c10::GetCPUAllocator())},
      {"tf32", std::to_string(at::globalContext().allowTF32CuBLAS())},
      {"deterministic algorithms", std::to_string(at::globalContext().deterministicAlgorithms())},
      {"new handler", text_of(std::get_new_handler())},
      {"terminate handler", text_of(std::get_terminate())},
      {"locale", std::setlocale(LC_ALL, nullptr)},
      {"priority", std::to_string(getpriority(PRIO_PROCESS, 0))},
      {"working folder", std::filesystem::current_path().string()}};
  for (int resource = 0; resource < RLIMIT_NLIMITS; ++resource) {
    rlimit limit{};
    getrlimit(static_cast<__rlimit_resource>(resource), &limit);
    state["limit " + std::to_string(resource)] =
        std::to_string(limit.rlim_cur) + " of " + std::to_string(limit.rlim_max);
  }
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    state["variable " + text.substr(0, text.find('='))] = text;
  }
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    const std::string name = line.substr(0, line.find(':'));
    if (name == "Umask" || name == "SigBlk" || name == "SigIgn") state[name] = line;
    if (name == "SigCgt") {  // but for 32 and 33, which the C library catches where there are threads
      const uint64_t caught = std::stoull(line.substr(line.find(':') + 1), nullptr, 16);
      state[name] = std::to_string(caught & ~(uint64_t{3} << 31));
    }
  }
  return state;
}

}  // namespace trainwright::test
