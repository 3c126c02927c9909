/// A file that may be written by several processes, one after the other, and appears once it is whole.
#pragma once

#include <cstdint>
#include <string>

#include "lib/io/byte_sink.h"

namespace trainwright {

/// Written as ".<name>.partial" in the same folder; Commit() is fsync, rename, fsync of the folder. Unlike
/// that of an AtomicFileSink the partial file stays where there is no Commit(), so that another process can
/// continue it, and one process at a time has it.
class ResumableFileSink final : public OverwritableSink {
 public:
  /// \param kept_bytes what stays of the partial file, which has as many at least; 0: it begins again
  /// \throws Error{kUsage} when another process writes it, Error{kBadInput} when it has fewer bytes,
  ///     Error{kIo}
  ResumableFileSink(std::string path, uint64_t kept_bytes);
  ~ResumableFileSink() override;
  ResumableFileSink(const ResumableFileSink&) = delete;
  ResumableFileSink& operator=(const ResumableFileSink&) = delete;

  void Write(ByteSpan bytes) override;
  void Overwrite(uint64_t offset, ByteSpan bytes) override;
  /// Waits until the disk has what was written.
  /// \throws Error{kIo}
  void Sync();
  void Commit() override;
  const std::string& name() const override { return path_; }
  uint64_t size_bytes() const { return size_bytes_; }

  /// Where the file of that path is until it is whole.
  static std::string PartialPathOf(const std::string& path);

 private:
  std::string path_, partial_;
  int fd_ = -1;
  uint64_t size_bytes_ = 0;
};

}  // namespace trainwright
