/// Compressing, restoring, checking and rewriting one checkpoint file: what `ckpt-compress` does with a file.
/// "-" is standard input or output. Output files appear whole or not at all.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/codec/checkpoint_decoder.h"
#include "lib/codec/checkpoint_encoder.h"
#include "lib/codec/compressed_checkpoint.h"

namespace trainwright {

/// What to do with an input that is compressed already: refuse it, or write it in another form.
enum class CompressedInput { kRefuse, kRewrite };

struct CompressJobOptions {
  CodecLevel level = CodecLevel::kDefault;
  /// The form to write; nothing: a container for files, a stream for pipes.
  std::optional<CompressedForm> form = {};
  CompressedInput compressed_input = CompressedInput::kRefuse;
  int threads = 1;
  bool verify = true;
  bool force = false;       ///< replace files, write binary to a terminal
  bool keep_going = false;  ///< restore the tensors that are sound
  std::string base;         ///< path, empty: none
  /// All of the run, this one with them: a folder that is written may replace none of them.
  std::vector<std::string> inputs = {};
  std::string writer;  ///< see CompressedHead
  std::function<void(uint64_t source_bytes)> progress = {};
};

struct CompressReport {
  uint64_t files = 0, tensors = 0;
  uint64_t source_bytes = 0, compressed_bytes = 0;
  uint64_t tensors_lost = 0;              ///< with keep_going
  std::vector<DamagedBlock> damage = {};  ///< with keep_going
  /// With keep_going: why there is no output of a file, which `files` does not count: not even its header is
  /// left.
  std::vector<Error> lost_files = {};
  bool content_checked = true;         ///< false: without the base only what is stored was checked
  std::vector<std::string> kept = {};  ///< of a folder: files that are compressed already, copied as they are
  void Add(const CompressReport& other);
};

/// "model.safetensors" -> "model.twc.safetensors", or as a stream "model.safetensors.twc". Empty for another
/// name.
std::string CompressedName(const std::string& name, CompressedForm form);
/// The inverse; empty for a name that CompressedName does not give.
std::string RestoredName(const std::string& name);

/// Looks at the first bytes alone, and consumes nothing.
/// \throws Error{kBadInput} where they are those of no safetensors file and of no stream made of one
void RequireSafetensors(BufferedReader* reader);

/// Whether what the reader is about to give is a compressed checkpoint, of either form. Consumes nothing.
bool IsCompressed(BufferedReader* reader);

/// \throws Error{kUsage} when the output exists (unless forced), when the input is compressed already, or is
/// to be rewritten with a base or a level that is not the default; Error{kBadInput} on a file that breaks a
/// rule of the format; Error{kIo} also when the input changes meanwhile
CompressReport CompressFile(const std::string& input, const std::string& output,
                            const CompressJobOptions& options);
/// With keep_going an input with damaged tensors gives a safetensors file of the others, and one in which no
/// tensor is found gives nothing and is no error.
CompressReport RestoreFile(const std::string& input, const std::string& output,
                           const CompressJobOptions& options);
/// Decodes and checks everything. With keep_going damage is reported, not thrown.
CompressReport VerifyFile(const std::string& input, const CompressJobOptions& options);

/// A file, or what is read once, copied to a nameless one.
std::unique_ptr<RandomReader> OpenInput(const std::string& input);
/// A file that appears whole or not at all, standard output, or a device.
/// \param input whose permissions a file gets
/// \param overwritable the result is an OverwritableSink
/// \throws Error{kUsage} when a file exists and `force` is false
std::unique_ptr<ByteSink> OpenOutput(const std::string& output, const std::string& input, bool overwritable,
                                     bool force);

}  // namespace trainwright
