/// What machine this is, for records of measurements.
#pragma once

#include <cstdint>
#include <string>

namespace trainwright {

struct HostFacts {
  std::string name;    ///< host name
  std::string cpu;     ///< model name of the processor; empty where the kernel does not report
  int processors = 0;  ///< that this process may run on
  int64_t memory_bytes = 0;
  std::string kernel;    ///< "Linux 6.1.0"
  double load_1min = 0;  ///< load average
};

HostFacts ReadHostFacts();

/// The same in all processes of one machine, in whatever containers, and different on others.
std::string MachineIdentity();

}  // namespace trainwright
