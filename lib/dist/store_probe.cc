#include "lib/dist/store_probe.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

namespace trainwright {
namespace {

bool Connects(const addrinfo& address, double timeout_s) {
  const int fd = socket(address.ai_family, address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  bool connects = connect(fd, address.ai_addr, address.ai_addrlen) == 0;
  if (!connects && errno == EINPROGRESS) {
    pollfd wait = {.fd = fd, .events = POLLOUT, .revents = 0};
    int problem = 0;
    socklen_t size = sizeof problem;
    connects = poll(&wait, 1, static_cast<int>(timeout_s * 1e3)) == 1 &&
               getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &size) == 0 && problem == 0;
  }
  close(fd);
  return connects;
}

}  // namespace

bool ListensAt(const std::string& host, int port, double timeout_s) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return false;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, freeaddrinfo);
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    if (Connects(*address, timeout_s)) return true;
  }
  return false;
}

}  // namespace trainwright
