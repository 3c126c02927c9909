#include "lib/io/cut_mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lib/base/error.h"

namespace trainwright {
namespace {

// A signal handler can reach nothing but globals. Written before the handler is there, and only read by it.
struct sigaction g_next = {};
std::atomic_flag g_told = ATOMIC_FLAG_INIT;

/// Part of a file that is mapped.
struct Mapping {
  std::array<char, 1024> path{};
  uint64_t offset_bytes = 0;  ///< in the file, of the address that was asked for
};

// What follows calls only what may be called in a signal handler.

uint64_t TakeHex(const char** text) {
  uint64_t value = 0;
  for (;; ++*text) {
    const char digit = **text;
    if (digit >= '0' && digit <= '9') {
      value = value * 16 + static_cast<uint64_t>(digit - '0');
    } else if (digit >= 'a' && digit <= 'f') {
      value = value * 16 + static_cast<uint64_t>(digit - 'a' + 10);
    } else {
      return value;
    }
  }
}

/// Reads a line of /proc/self/maps: "begin-end rights offset device inode   path".
/// \returns whether the address lies in a file's mapping
bool ReadLine(const char* line, uintptr_t address, Mapping* mapping) {
  const uint64_t begin = TakeHex(&line);
  if (*line++ != '-') return false;
  const uint64_t end = TakeHex(&line);
  if (address < begin || address >= end) return false;
  for (int fields = 0; fields < 2; ++fields) {
    line = std::strchr(line, ' ');
    if (line == nullptr) return false;
    ++line;
  }
  mapping->offset_bytes = TakeHex(&line) + (address - begin);
  const char* const path = std::strchr(line, '/');
  if (path == nullptr || std::strlen(path) >= mapping->path.size()) return false;
  std::strcpy(mapping->path.data(), path);
  return true;
}

bool FindMapping(uintptr_t address, Mapping* mapping) {
  const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  std::array<char, 2048> text;
  size_t size = 0;
  bool found = false;
  while (!found) {
    const ssize_t count = read(fd, text.data() + size, text.size() - size);
    if (count <= 0) break;
    size += static_cast<size_t>(count);
    char* line = text.data();
    char* const end = line + size;
    for (char* mark; !found && (mark = std::find(line, end, '\n')) != end; line = mark + 1) {
      *mark = '\0';
      found = ReadLine(line, address, mapping);
    }
    size = static_cast<size_t>(end - line);
    if (size == text.size()) size = 0;  // a name too long to be told
    std::memmove(text.data(), line, size);
  }
  close(fd);
  return found;
}

bool WasCut(const Mapping& mapping) {
  struct stat info;
  return stat(mapping.path.data(), &info) == 0 && S_ISREG(info.st_mode) &&
         static_cast<uint64_t>(info.st_size) <= mapping.offset_bytes;
}

void Say(const char* text) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, std::strlen(text));
}

void OnBusError(int signal_number, siginfo_t* info, void*) {
  Mapping mapping;
  const bool is_access = info->si_code == BUS_ADRERR;
  if (is_access && FindMapping(reinterpret_cast<uintptr_t>(info->si_addr), &mapping) && WasCut(mapping)) {
    if (g_told.test_and_set()) {
      for (;;) pause();
    }
    const char* const tool = program_invocation_short_name;
    for (const char* text : {tool, ": error: ", static_cast<const char*>(mapping.path.data()),
                             ": was cut while it was read\n", tool, ": hint: ", kCutMappingHint, "\n"}) {
      Say(text);
    }
    _exit(static_cast<int>(ErrorCode::kBadInput));
  }
  sigaction(signal_number, &g_next, nullptr);
  if (!is_access) raise(signal_number);  // else the access is repeated
}

}  // namespace

void TellCutMappings() {
  sigaction(SIGBUS, nullptr, &g_next);
  struct sigaction action = {};
  action.sa_sigaction = OnBusError;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace trainwright
