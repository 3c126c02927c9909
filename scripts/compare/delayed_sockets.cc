// Preloaded into a program, makes each message over TCP late: a network with a latency, on one machine.
//
//   c++ -O2 -shared -fPIC -o delayed_sockets.so delayed_sockets.cc
//   LD_PRELOAD=./delayed_sockets.so SEND_DELAY_US=200 RECEIVE_DELAY_US=0 SENT_BYTES_FILE=PATH COMMAND
//
// SENT_BYTES_FILE is a file of 8 bytes a rank (RANK), where each counts what it has sent over TCP, for whoever looks on.
// A call that sends sleeps before it sends, one that receives after it has received something; both hold up the thread that
// makes them, which a network would not. Other descriptors than TCP sockets are left alone.
#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>

namespace {

template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

long MicrosecondsOf(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? 0 : std::atol(text);
}

bool IsTcp(int fd) {
  const int error = errno;
  int domain = 0, type = 0;
  socklen_t size = sizeof(int);
  const bool is = getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
                  (domain == AF_INET || domain == AF_INET6) &&
                  getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
  errno = error;
  return is;
}

void Sleep(long delay_us) {
  const int error = errno;
  timespec left = {delay_us / 1000000, delay_us % 1000000 * 1000};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
  errno = error;
}

/// This rank's in SENT_BYTES_FILE; null where there is none.
long* SentBytes() {
  const char *const path = std::getenv("SENT_BYTES_FILE"), *const rank = std::getenv("RANK");
  if (path == nullptr || rank == nullptr) return nullptr;
  const int fd = ::open(path, O_RDWR | O_CLOEXEC);
  struct stat file = {};
  const long place = std::atol(rank);
  long* sent = nullptr;
  if (fd >= 0 && fstat(fd, &file) == 0 && place >= 0 && (place + 1) * long{sizeof(long)} <= file.st_size) {
    void* const all =
        mmap(nullptr, static_cast<size_t>(file.st_size), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (all != MAP_FAILED) sent = static_cast<long*>(all) + place;
  }
  if (fd >= 0) ::close(fd);
  return sent;
}

// At once: a program may take RANK out of its environment for what it starts.
long* const sent_bytes = SentBytes();

void BeforeSending(int fd) {
  static const long delay_us = MicrosecondsOf("SEND_DELAY_US");
  if (delay_us > 0 && IsTcp(fd)) Sleep(delay_us);
}

ssize_t AfterSending(int fd, ssize_t sent) {
  const int error = errno;
  if (sent_bytes != nullptr && sent > 0 && IsTcp(fd)) __atomic_add_fetch(sent_bytes, sent, __ATOMIC_RELAXED);
  errno = error;
  return sent;
}

ssize_t AfterReceiving(int fd, ssize_t received) {
  static const long delay_us = MicrosecondsOf("RECEIVE_DELAY_US");
  if (delay_us > 0 && received > 0 && IsTcp(fd)) Sleep(delay_us);
  return received;
}

}  // namespace

extern "C" {

ssize_t send(int fd, const void* data, size_t size, int flags) {
  static const auto next = Next<ssize_t(int, const void*, size_t, int)>("send");
  BeforeSending(fd);
  return AfterSending(fd, next(fd, data, size, flags));
}

ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  static const auto next = Next<ssize_t(int, const msghdr*, int)>("sendmsg");
  BeforeSending(fd);
  return AfterSending(fd, next(fd, message, flags));
}

ssize_t write(int fd, const void* data, size_t size) {
  static const auto next = Next<ssize_t(int, const void*, size_t)>("write");
  BeforeSending(fd);
  return AfterSending(fd, next(fd, data, size));
}

ssize_t writev(int fd, const iovec* parts, int count) {
  static const auto next = Next<ssize_t(int, const iovec*, int)>("writev");
  BeforeSending(fd);
  return AfterSending(fd, next(fd, parts, count));
}

ssize_t recv(int fd, void* data, size_t size, int flags) {
  static const auto next = Next<ssize_t(int, void*, size_t, int)>("recv");
  return AfterReceiving(fd, next(fd, data, size, flags));
}

ssize_t recvmsg(int fd, msghdr* message, int flags) {
  static const auto next = Next<ssize_t(int, msghdr*, int)>("recvmsg");
  return AfterReceiving(fd, next(fd, message, flags));
}

ssize_t read(int fd, void* data, size_t size) {
  static const auto next = Next<ssize_t(int, void*, size_t)>("read");
  return AfterReceiving(fd, next(fd, data, size));
}

ssize_t readv(int fd, const iovec* parts, int count) {
  static const auto next = Next<ssize_t(int, const iovec*, int)>("readv");
  return AfterReceiving(fd, next(fd, parts, count));
}

}  // extern "C"
