/// Streams of the refusing device beside the one that computes, stream 0.
///
/// What is queued on stream 0 is done at once. Copies that are queued on another stream are done as late as
/// a GPU may do them: when stream 0 waits for an event that was recorded after them, when the host waits, or
/// when memory that was recorded on the stream is freed. So whoever does not wait reads what was there
/// before. What would race on a GPU the other way round is a violation: a copy that touches memory which
/// stream 0 may still work on, since the stream does not wait for it; and memory that is freed while another
/// stream uses it without having been recorded there. A thread has streams of its own.
#pragma once

#include <c10/core/Stream.h>

#include <cstddef>
#include <cstdint>
#include <functional>

namespace trainwright::test {

int64_t PresentStream();
/// \returns the one before
int64_t ExchangeStream(int64_t stream);
int64_t NewStream();

/// Whether copies are not done at once.
inline bool IsOnSideStream() {
  return PresentStream() != 0;
}
/// Queues a copy on the present side stream.
/// \param kernel_memory what it reads or writes of the device
void QueueOnSideStream(void* kernel_memory, size_t size, std::function<void()> copy);

struct StreamEvent {
  int64_t stream = 0;
  uint64_t copies = 0;   ///< that were queued there
  uint64_t kernels = 0;  ///< that this thread had queued
};
StreamEvent RecordOn(int64_t stream);
/// `stream` goes on behind the event.
void BlockOn(const StreamEvent& event, int64_t stream);
void FinishSideStreams();

/// This thread has queued a kernel.
void NoteKernel();
/// Of an allocation on the present stream, of its use on another, and of its end.
void NoteAllocation(const void* kernel_memory);
void NoteUse(const void* kernel_memory, int64_t stream);
void NoteFree(const void* kernel_memory, size_t size);

}  // namespace trainwright::test
