/// Where bytes go: a file that appears whole or not at all, standard output, or memory.
///
/// Writers call Commit() explicitly; a sink destroyed without it leaves nothing behind. Destructors never
/// report.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/io/descriptor.h"
#include "lib/io/temporary_file.h"
#include "lib/io/unnamed_file.h"

namespace trainwright {

class ByteSink {
 public:
  virtual ~ByteSink() = default;
  /// \throws Error{kIo}; of OnStop::kThrow also Error{kInterrupted, kTerminated} once a stop signal arrived,
  ///     where it is no file
  virtual void Write(ByteSpan bytes) = 0;
  /// Makes what was written visible and durable; called once, last.
  /// \throws Error{kIo}
  virtual void Commit() = 0;
  /// For messages: the path, or "standard output".
  virtual const std::string& name() const = 0;
};

/// A sink whose beginning can be written last, as a header that has sizes must be.
class OverwritableSink : public ByteSink {
 public:
  /// Replaces bytes that were written before.
  /// \throws Error{kIo}
  virtual void Overwrite(uint64_t offset, ByteSpan bytes) = 0;
};

/// A file written as a LockedTemporary in the same folder; Commit() is fsync, rename, fsync of the folder, so
/// that a crash at any moment leaves the old file or the new one. The final name may be set as late as the
/// commit. What a killed writer leaves is there until RemoveStaleTemporaries.
class AtomicFileSink final : public OverwritableSink {
 public:
  /// \param permissions of the file from its first byte on; nothing: what the umask leaves of 0666
  /// \throws Error{kIo} when the folder is missing or not writable
  explicit AtomicFileSink(std::string path, std::optional<uint32_t> permissions = {});
  void Write(ByteSpan bytes) override;
  void Overwrite(uint64_t offset, ByteSpan bytes) override;
  /// Makes Commit() refuse to replace a file, also one that appeared meanwhile, with Error{kUsage}.
  void KeepExisting() { keep_existing_ = true; }
  /// \throws Error{kIo} saying whether the file was not committed, or is in place but perhaps not durable
  void Commit() override;
  /// Changes the name that Commit() will give; same folder.
  void SetFinalName(const std::string& file_name);
  const std::string& name() const override { return path_; }
  uint64_t size_bytes() const { return size_bytes_; }

 private:
  std::string path_;
  std::unique_ptr<LockedTemporary> temporary_;  // null after the commit
  uint64_t size_bytes_ = 0;
  bool keep_existing_ = false;
};

class StdoutSink final : public ByteSink {
 public:
  explicit StdoutSink(OnStop on_stop = OnStop::kThrow) : on_stop_(on_stop) {}
  void Write(ByteSpan bytes) override;
  void Commit() override {}  // RunTool checks the delayed errors of standard output
  const std::string& name() const override;

 private:
  OnStop on_stop_;
};

class MemorySink final : public OverwritableSink {
 public:
  void Write(ByteSpan bytes) override { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  void Overwrite(uint64_t offset, ByteSpan bytes) override;
  void Commit() override { committed_ = true; }
  const std::string& name() const override;
  const std::vector<uint8_t>& bytes() const { return bytes_; }
  bool committed() const { return committed_; }

 private:
  std::vector<uint8_t> bytes_;
  bool committed_ = false;
};

/// Keeps what is written in a temporary file (OpenTemporaryFile) and passes it on at the commit.
class SpooledSink final : public OverwritableSink {
 public:
  /// \throws Error{kIo}
  explicit SpooledSink(std::unique_ptr<ByteSink> target);
  void Write(ByteSpan bytes) override;
  void Overwrite(uint64_t offset, ByteSpan bytes) override;
  void Commit() override;
  const std::string& name() const override { return target_->name(); }

 private:
  std::unique_ptr<ByteSink> target_;
  std::unique_ptr<UnnamedFile> file_;
};

/// IsStandardOutput is it; a device, pipe or socket is written in place; anything else is an AtomicFileSink
/// (of the file that a symbolic link points to).
/// \param permissions of a file, see AtomicFileSink
/// \param on_stop of what is no file; a file is written whatever signals arrive
/// \throws Error{kUsage} when binary data would go to a terminal and `allow_terminal` is false, and when the
///     path is a folder. Removes what killed processes left beside it
std::unique_ptr<ByteSink> OpenSink(const std::string& path, bool binary, bool allow_terminal,
                                   std::optional<uint32_t> permissions = {}, OnStop on_stop = OnStop::kThrow);

/// The permissions of a file, for a sink whose content is made from it; nothing for "-" and what is no file.
/// Set-user-ID and set-group-ID are left out.
/// \throws Error{kIo}
std::optional<uint32_t> PermissionsOf(const std::string& path);

/// \throws Error{kUsage} when an output is one of the inputs, or a file in a folder that is one; as
///     FollowOutputLink. Devices and "-" are neither
void RefuseToReplaceInputs(const std::string& output, const std::vector<std::string>& inputs);

/// The Error{kUsage} for an output that is not to be replaced.
Error ExistsAlready(const std::string& path);

/// Writes a whole small file atomically, and removes what killed processes left of it. A device, pipe or
/// socket is written in place.
/// \throws Error{kIo}
void WriteFileAtomically(const std::string& path, ByteSpan content);

/// Adds to the end of a file, made if need be, and waits until the disk has it. What a failure leaves of
/// `text` is a beginning of it.
/// \throws Error{kIo}
void AppendDurably(const std::string& path, const std::string& text);

/// Whether an output of this name is a folder: it ends in '/', or is one. "-" is none.
bool IsFolderPath(const std::string& path);

/// fsync of a folder, so that renames in it survive a crash.
/// \throws Error{kIo}
void SyncFolder(const std::string& folder);

/// The folder part of a path; "." for a bare name.
std::string FolderOf(const std::string& path);

}  // namespace trainwright
