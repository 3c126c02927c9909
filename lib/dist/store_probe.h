/// Whether the process that serves a store is still there.
#pragma once

#include <string>

namespace trainwright {

/// Tries to connect, once: c10d's client takes a refusal for a server that is yet to come, and waits.
/// \returns whether somebody listens there
bool ListensAt(const std::string& host, int port, double timeout_s);

}  // namespace trainwright
