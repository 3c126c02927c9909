/// Which copies of shards in a --cache-dir make way for another.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace trainwright {

/// A copy without a use for this long is taken for forgotten.
inline constexpr std::chrono::hours kForgottenAfter{24 * 30};

/// Keeps a copy from being removed while this process runs, and notes by its modification time that it was
/// used. One of another user, who alone may set that, keeps the old time.
void KeepInUse(const std::string& copy);

/// Removes copies that no process keeps in use, those unused the longest first: the forgotten ones, and as
/// many more as are needed for `bytes` that are to be written. What cannot be removed stays.
/// \param folder its other files stay
/// \param available bytes that are free there
void RetireCopies(const std::string& folder, uint64_t bytes, uint64_t available);

/// "trainwright-<16 hex digits>.tws" of a set's content.
std::string CopyName(const std::string& content_sha256);
/// Whether a name is of that form.
bool IsCopyName(const std::string& name);

}  // namespace trainwright
