/// What LibTorch writes to standard error by itself.
#pragma once

namespace trainwright {

/// Leaves standard error to the tool, which reports broken connections and lost ranks in its own words:
/// c10d's lines between them, of connections that are tried again, help no user. With TORCH_CPP_LOG_LEVEL
/// set LibTorch writes from that level on. For mains, before ranks connect.
void QuietTorchLog();

}  // namespace trainwright
