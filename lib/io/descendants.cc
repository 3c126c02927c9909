#include "lib/io/descendants.h"

#include <dirent.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trainwright {
namespace {

/// A process is another one than an earlier one of its number by when it began.
struct Process {
  pid_t parent = 0;
  bool has_ended = false;
  uint64_t begun_ticks = 0;
};

using ProcessTable = std::map<pid_t, Process>;

/// Reads "number (name) state parent ..." of proc_pid_stat(5); a name may hold anything.
/// \returns false where the process is gone
bool ReadProcess(pid_t pid, Process* process) {
  constexpr int kFieldsBetween = 17;  // of the parent, the 4th, and the time that it began, the 22nd
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::ostringstream whole;
  whole << file.rdbuf();
  const std::string text = whole.str();
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return false;
  std::istringstream fields(text.substr(name_end + 1));
  char state = 0;
  fields >> state >> process->parent;
  std::string skipped;
  for (int i = 0; i < kFieldsBetween; ++i) fields >> skipped;
  fields >> process->begun_ticks;
  process->has_ended = state == 'Z' || state == 'X';
  return !fields.fail();
}

ProcessTable ReadProcesses() {
  ProcessTable table;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc"), closedir);
  if (folder == nullptr) return table;
  while (const dirent* entry = readdir(folder.get())) {
    const std::string_view name = entry->d_name;
    pid_t pid = 0;
    const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    Process process;
    if (error != std::errc() || stop != name.data() + name.size() || !ReadProcess(pid, &process)) continue;
    table.emplace(pid, process);
  }
  return table;
}

/// Whether a process is, or descends from, a child of this one that began with `oldest` or later.
bool Descends(pid_t pid, const ProcessTable& table, std::pair<uint64_t, pid_t> oldest) {
  const pid_t self = getpid();
  for (size_t generations = 0; generations < table.size(); ++generations) {
    const auto found = table.find(pid);
    if (found == table.end()) return false;
    const Process& process = found->second;
    if (process.parent == self) return std::pair(process.begun_ticks, pid) >= oldest;
    pid = process.parent;
  }
  return false;  // a table that was read while processes came and went
}

}  // namespace

void AdoptOrphans() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void KillDescendants(pid_t child) {
  std::set<std::pair<uint64_t, pid_t>> killed;
  Process first;
  if (!ReadProcess(child, &first)) return;
  // What was killed begins no others: as soon as a look finds none that was not, there is none.
  for (size_t before = 0, looks = 0; looks == 0 || killed.size() > before; ++looks) {
    before = killed.size();
    const ProcessTable table = ReadProcesses();
    for (const auto& [pid, process] : table) {
      if (process.has_ended || !Descends(pid, table, {first.begun_ticks, child})) continue;
      if (killed.emplace(process.begun_ticks, pid).second) kill(pid, SIGKILL);
    }
  }
}

void ReapOrphans() {
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

}  // namespace trainwright
