#include "tests/support/syscall_faults/syscall_faults.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

/// Plain data: a call may come before any constructor ran.
struct Fault {
  bool set = false, lasting = false;
  char call[16] = {}, path[256] = {}, action[32] = {};
  long number = 0;
};
constinit Fault fault;
char recorded_path[256];
bool recording = false, no_rename_flags = false;
std::vector<trainwright::test::RecordedSyscall>* recorded = nullptr;

template <typename Function>
Function Next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

/// A signal that comes sooner is a copy of the one before it (lib/base/signals.h).
void WaitBetweenSignals() {
  const timespec pause = {.tv_sec = 1, .tv_nsec = 200'000'000};
  nanosleep(&pause, nullptr);
}

void Raise(const char* names) {
  for (const char* name = names; name != nullptr; name = std::strchr(name, '+')) {
    if (*name == '+') {
      WaitBetweenSignals();
      ++name;
    }
    raise(std::strncmp(name, "KILL", 4) == 0   ? SIGKILL
          : std::strncmp(name, "STOP", 4) == 0 ? SIGSTOP
          : std::strncmp(name, "TERM", 4) == 0 ? SIGTERM
                                               : SIGINT);
  }
}

/// Whether the call is to fail, with errno set. Raises the signals of the fault.
bool Fails(const char* call, const char* path, const char* from = nullptr) {
  if (recording && std::strstr(path, recorded_path) != nullptr) {
    recorded->push_back({call, path, from != nullptr ? from : ""});
  }
  if (!fault.set || (std::strcmp(fault.call, "any") != 0 && std::strcmp(fault.call, call) != 0)) return false;
  if (std::strstr(path, fault.path) == nullptr) return false;
  --fault.number;
  if (fault.number > 0 || (fault.number < 0 && !fault.lasting)) return false;
  if (fault.action[0] != 'E') {
    Raise(fault.action);
    return false;
  }
  errno = std::strcmp(fault.action, "ENOSPC") == 0 ? ENOSPC : EIO;
  return true;
}

/// \param name in the folder that `fd` is; empty: of `fd` itself
bool Fails(const char* call, int fd, const char* name = "") {
  if (!fault.set && !recording) return false;
  char link[32], path[1024];
  std::snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof(path) / 2);
  if (length <= 0) return false;
  const size_t end = static_cast<size_t>(length);
  std::snprintf(path + end, sizeof(path) - end, "%s%s", *name == '\0' ? "" : "/", name);
  return Fails(call, path);
}

int Open(const char* name, const char* path, int flags, mode_t mode) {
  if ((flags & O_CREAT) != 0 && Fails("open", path)) return -1;
  return Next<int (*)(const char*, int, ...)>(name)(path, flags, mode);
}

[[gnu::constructor]] void ReadEnvironment() {
  if (const char* text = std::getenv("SYSCALL_FAULT")) trainwright::test::SetSyscallFault(text);
  no_rename_flags = std::getenv("SYSCALL_NO_RENAME_FLAGS") != nullptr;
}

}  // namespace

namespace trainwright::test {

void SetSyscallFault(const std::string& text) {
  fault = {};
  if (text.empty()) return;
  if (std::sscanf(text.c_str(), "%15s %255s %ld %31s", fault.call, fault.path, &fault.number, fault.action) !=
      4) {
    std::fprintf(stderr, "SYSCALL_FAULT: cannot read '%s'\n", text.c_str());
    std::abort();
  }
  if (char* dots = std::strstr(fault.action, "...")) {
    fault.lasting = true;
    *dots = '\0';
  }
  fault.set = true;
}

void RecordSyscalls(const std::string& path) {
  std::snprintf(recorded_path, sizeof(recorded_path), "%s", path.c_str());
  delete recorded;
  recorded = new std::vector<RecordedSyscall>;
  recording = true;
}

std::vector<RecordedSyscall> RecordedSyscalls() {
  recording = false;
  return *recorded;
}

}  // namespace trainwright::test

extern "C" {

[[gnu::visibility("default")]] int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return Open("open", path, flags, mode);
}

[[gnu::visibility("default")]] int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return Open("open64", path, flags, mode);
}

[[gnu::visibility("default")]] ssize_t write(int fd, const void* bytes, size_t size) {
  if (Fails("write", fd)) return -1;
  return Next<ssize_t (*)(int, const void*, size_t)>("write")(fd, bytes, size);
}

// An overwrite counts as a write.
[[gnu::visibility("default")]] ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  if (Fails("write", fd)) return -1;
  return Next<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite")(fd, bytes, size, offset);
}

#ifndef __SANITIZE_THREAD__  // which maps memory of its own before it can follow calls
// Nothing changes by it: it is no call of a record, and none of "any".
[[gnu::visibility("default")]] void* mmap(void* address, size_t size, int protection, int flags, int fd,
                                          off_t offset) noexcept {
  if (fd >= 0 && fault.set && std::strcmp(fault.call, "mmap") == 0 && Fails("mmap", fd)) return MAP_FAILED;
  return Next<void* (*)(void*, size_t, int, int, int, off_t)>("mmap")(address, size, protection, flags, fd,
                                                                      offset);
}
#endif

[[gnu::visibility("default")]] int fsync(int fd) {
  if (Fails("fsync", fd)) return -1;
  return recording ? 0 : Next<int (*)(int)>("fsync")(fd);
}

[[gnu::visibility("default")]] int rename(const char* from, const char* to) noexcept {
  if (Fails("rename", to, from)) return -1;
  return Next<int (*)(const char*, const char*)>("rename")(from, to);
}

[[gnu::visibility("default")]] int renameat2(int from_folder, const char* from, int to_folder, const char* to,
                                             unsigned flags) noexcept {
  if (flags != 0 && no_rename_flags) {
    // Whether a name is taken the kernel knows without the file system.
    const bool is_taken =
        flags == RENAME_NOREPLACE && faccessat(to_folder, to, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    errno = is_taken ? EEXIST : EINVAL;
    return -1;
  }
  if (Fails("rename", to, from)) return -1;
  return Next<int (*)(int, const char*, int, const char*, unsigned)>("renameat2")(from_folder, from,
                                                                                  to_folder, to, flags);
}

[[gnu::visibility("default")]] int symlink(const char* target, const char* path) noexcept {
  if (Fails("symlink", path)) return -1;
  return Next<int (*)(const char*, const char*)>("symlink")(target, path);
}

// By which remove_all deletes what a folder holds; like mmap no call of a record, and none of "any".
[[gnu::visibility("default")]] int unlinkat(int folder, const char* name, int flags) noexcept {
  if (fault.set && std::strcmp(fault.call, "unlinkat") == 0 && Fails("unlinkat", folder, name)) return -1;
  return Next<int (*)(int, const char*, int)>("unlinkat")(folder, name, flags);
}

[[gnu::visibility("default")]] int mkdir(const char* path, mode_t mode) noexcept {
  if (Fails("mkdir", path)) return -1;
  return Next<int (*)(const char*, mode_t)>("mkdir")(path, mode);
}

}  // extern "C"
