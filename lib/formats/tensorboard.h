/// TensorBoard event files: scalars of a training run, one series a tag.
///
/// An event file is a TFRecord file (each record framed by its length and masked CRC-32C) of `Event` protocol
/// buffers (tensorboard/compat/proto/event.proto). Only the fields that scalars need are written.
///
/// A run has one file a process, events.out.tfevents.<10-digit ordinal>.trainwright: TensorBoard reads them
/// in the order of their names. A process that resumes at step N first cuts the files of those before it
/// (CutEventFiles), so a resumed run is one curve. It begins its own with SessionLog START at step N + 1,
/// upon which a TensorBoard that has read the files before they were cut, and knows such events (its data
/// server does not), forgets what they held of that step and later ones. A record torn by kill -9 ends its
/// file for a reader.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/bytes.h"

namespace trainwright {

struct TensorboardScalar {
  std::string tag;   ///< "loss/train"; TensorBoard groups by what is before the slash
  double value = 0;  ///< stored as float; NaN and infinities are shown as such
};

/// The protocol buffers of the three kinds of event.
/// \param wall_time_s since 1970-01-01 UTC
std::vector<uint8_t> EncodeFileVersionEvent(double wall_time_s);
std::vector<uint8_t> EncodeRestartEvent(double wall_time_s, int64_t step);
std::vector<uint8_t> EncodeScalarsEvent(double wall_time_s, int64_t step,
                                        std::span<const TensorboardScalar> scalars);

/// Length, masked CRC-32C of the length, content, masked CRC-32C of the content.
std::vector<uint8_t> FrameTfRecord(ByteSpan content);

/// Of the loss of an evaluation: every event of one has it.
inline constexpr char kEvaluationTag[] = "loss/eval";

/// Cuts the event files of a run back to what was written up to a checkpoint of `step`: events of later steps
/// and a torn last record go, and files that are left without a scalar. -1 removes all. Files of other
/// programs stay; a missing folder is left missing.
/// \param repeated_tag events of `step` that have it go, too, as they are made again; empty: none do
/// \throws Error{kIo}
void CutEventFiles(const std::string& folder, int64_t step, std::string_view repeated_tag = {});

/// Writes the event file of one process. Each event is one write(2), so it is visible at once and survives
/// the death of the process, not of the machine. Not thread-safe.
class TensorboardWriter {
 public:
  /// Creates `folder` where needed, and in it the next file.
  /// \param first_step events of this step and later ones that were read of earlier files are void
  /// \throws Error{kIo}
  TensorboardWriter(const std::string& folder, int64_t first_step, double wall_time_s);
  ~TensorboardWriter();
  TensorboardWriter(const TensorboardWriter&) = delete;
  TensorboardWriter& operator=(const TensorboardWriter&) = delete;

  /// \throws Error{kIo}
  void WriteScalars(double wall_time_s, int64_t step, std::span<const TensorboardScalar> scalars);
  const std::string& path() const { return path_; }

 private:
  void Append(ByteSpan event);

  std::string path_;
  int fd_ = -1;
};

}  // namespace trainwright
