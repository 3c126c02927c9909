/// A piece of work that --profile times: one line at the entry point of a module.
///
/// Times go to the timeline that is attached to the thread. Threads have none unless a profile is being
/// taken, and then a scope costs one branch on a thread-local pointer; with one, two looks at the clock.
/// Nothing that is computed depends on it. Only the training thread is profiled: what workers of a parallel
/// loop do is time of the thread that waits for them.
#pragma once

#include <cstdint>
#include <utility>

#include "lib/base/host_timeline.h"

namespace trainwright {

/// The timeline of this thread; null: none.
inline constinit thread_local HostTimeline* thread_timeline = nullptr;

/// Attaches a timeline to this thread while it lives.
class ProfiledThread {
 public:
  /// \param timeline outlives this
  explicit ProfiledThread(HostTimeline* timeline) : before_(std::exchange(thread_timeline, timeline)) {}
  ~ProfiledThread() { thread_timeline = before_; }
  ProfiledThread(const ProfiledThread&) = delete;
  ProfiledThread& operator=(const ProfiledThread&) = delete;

 private:
  HostTimeline* before_;
};

class ProfileScope {
 public:
  /// \param name static, as tables show it
  /// \param operations floating-point operations that the work does; 0: not counted
  ProfileScope(const char* name, ProfilePart part, int64_t operations = 0) : timeline_(thread_timeline) {
    if (timeline_ != nullptr) [[unlikely]]
      timeline_->Begin(name, part, operations);
  }
  ~ProfileScope() {
    if (timeline_ != nullptr) [[unlikely]]
      timeline_->End();
  }
  ProfileScope(const ProfileScope&) = delete;
  ProfileScope& operator=(const ProfileScope&) = delete;

 private:
  HostTimeline* timeline_;
};

/// The same of work whose inner pieces are not told apart, as an evaluation's: their operations do not count.
class OpaqueProfileScope {
 public:
  OpaqueProfileScope(const char* name, ProfilePart part) : timeline_(thread_timeline) {
    if (timeline_ != nullptr) timeline_->Begin(name, part, 0, /*opaque=*/true);
  }
  ~OpaqueProfileScope() {
    if (timeline_ != nullptr) timeline_->End();
  }
  /// Says how many floating-point operations it did, once that is known. No other piece is under way in it.
  void Count(int64_t operations) {
    if (timeline_ != nullptr) timeline_->Count(operations);
  }
  OpaqueProfileScope(const OpaqueProfileScope&) = delete;
  OpaqueProfileScope& operator=(const OpaqueProfileScope&) = delete;

 private:
  HostTimeline* timeline_;
};

}  // namespace trainwright
