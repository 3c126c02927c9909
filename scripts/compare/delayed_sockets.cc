// Preloaded into a program, makes each message over TCP late: a network with a latency, on one machine.
//
//   c++ -O2 -shared -fPIC -o delayed_sockets.so delayed_sockets.cc
//   LD_PRELOAD=./delayed_sockets.so SEND_DELAY_US=200 RECEIVE_DELAY_US=0 COMMAND
//
// A call that sends sleeps before it sends, one that receives after it has received something; both hold up the thread that
// makes them, which a network would not. Other descriptors than TCP sockets are left alone.
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
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

void BeforeSending(int fd) {
  static const long delay_us = MicrosecondsOf("SEND_DELAY_US");
  if (delay_us > 0 && IsTcp(fd)) Sleep(delay_us);
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
  return next(fd, data, size, flags);
}

ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  static const auto next = Next<ssize_t(int, const msghdr*, int)>("sendmsg");
  BeforeSending(fd);
  return next(fd, message, flags);
}

ssize_t write(int fd, const void* data, size_t size) {
  static const auto next = Next<ssize_t(int, const void*, size_t)>("write");
  BeforeSending(fd);
  return next(fd, data, size);
}

ssize_t writev(int fd, const iovec* parts, int count) {
  static const auto next = Next<ssize_t(int, const iovec*, int)>("writev");
  BeforeSending(fd);
  return next(fd, parts, count);
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
