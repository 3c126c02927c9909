/// Work of the refusing device that is recorded and repeated, as a GPU's graphs are.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "lib/device/device_graph_plugin.h"
#include "tests/support/refusing_device/host_view.h"

namespace trainwright::test {

/// Whether this thread records; whether it repeats what was recorded.
bool IsRecording();
bool IsRepeating();
/// Keeps `work` as the next of the recording graph. It holds the tensors that it reads and writes, so that
/// their memory stays.
void Keep(std::function<void()> work);
/// Runs work, and keeps it where this thread records: what it writes is put back once recording ends.
template <typename Work>
void RunAndKeep(Work work) {
  work();
  if (IsRecording()) Keep(std::move(work));
}

/// Writes what a kernel returned to what it returned when it was recorded, unless they are one.
inline void CopyResult(const at::Tensor& to, const at::Tensor& from) {
  if (!to.defined() || to.is_same(from) || !to.is_privateuseone()) return;
  HostViews views;
  views.Of(to).copy_(views.Of(from));
}
template <typename Value>
void CopyResult(const Value&, const Value&) {}
template <typename... Values>
void CopyResult(const std::tuple<Values...>& to, const std::tuple<Values...>& from) {
  [&]<size_t... i>(std::index_sequence<i...>) {
    (CopyResult(std::get<i>(to), std::get<i>(from)), ...);
  }
  (std::index_sequence_for<Values...>());
}

/// An operator of the device that is kept where it is recorded.
template <auto Operator>
struct Kept;
template <typename Result, typename... Arguments, Result (*Operator)(Arguments...)>
struct Kept<Operator> {
  static Result Call(Arguments... arguments) {
    std::tuple<std::decay_t<Arguments>...> kept(arguments...);
    if constexpr (std::is_void_v<Result>) {
      Operator(arguments...);
      if (IsRecording()) Keep([kept]() mutable { std::apply(Operator, kept); });
    } else {
      Result result = Operator(arguments...);
      if (IsRecording()) {
        Keep([kept, to = std::decay_t<Result>(result)]() mutable {
          CopyResult(to, std::decay_t<Result>(std::apply(Operator, kept)));
        });
      }
      return result;
    }
  }
};

/// As the CUDA plugin's. A copy between host and device, or a wait, while work is recorded fails.
const DeviceGraphPlugin* DeviceGraphs();

/// While it lives no graph can be recorded: none begins, or memory runs out at the fiftieth kernel.
class FailRecording {
 public:
  enum Where { kAtTheBeginning, kInTheMiddle };
  explicit FailRecording(Where where = kAtTheBeginning);
  ~FailRecording();
  FailRecording(const FailRecording&) = delete;
  FailRecording& operator=(const FailRecording&) = delete;

 private:
  Where where_;
};

}  // namespace trainwright::test
