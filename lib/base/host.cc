#include "lib/base/host.h"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace trainwright {
namespace {

std::string CpuModel() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

}  // namespace

std::string MachineIdentity() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string identity;
  return std::getline(file, identity) && !identity.empty() ? identity : ReadHostFacts().name;
}

HostFacts ReadHostFacts() {
  HostFacts facts;
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) == 0) facts.name = name;
  facts.cpu = CpuModel();
  cpu_set_t allowed;
  facts.processors = sched_getaffinity(0, sizeof(allowed), &allowed) == 0
                         ? CPU_COUNT(&allowed)
                         : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  facts.memory_bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  utsname system{};
  if (uname(&system) == 0) facts.kernel = std::string(system.sysname) + " " + system.release;
  double loads[1] = {};
  if (getloadavg(loads, 1) == 1) facts.load_1min = loads[0];
  return facts;
}

}  // namespace trainwright
