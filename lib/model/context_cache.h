/// Keys and values of texts, kept in a folder so that generating after a text does not compute it again.
///
///   index.jsonl          {"id", "file", "tokens", "mask", "sha256"} of each text
///   00000000.safetensors keys, values [L, G, M, K] in the storage type; ids I64 [M]
///
/// The files' metadata say which model, precision and attention they are from; keys are turned to positions
/// from 0 on. The folder appears whole or not at all. man/trainwright-context.5.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/io/atomic_folder.h"
#include "lib/model/body.h"

namespace trainwright {

/// A text as a model with keys and values has seen it.
struct CachedContext {
  std::vector<int64_t> tokens;
  AttentionMask mask = AttentionMask::kCausal;
  CacheTensors cache;
};

/// Of what the keys and values of a folder depend on besides the tokens.
struct ContextIdentity {
  std::string model_sha256;  ///< of the weights; with an adapter both, joined by '+'
  std::string precision;     ///< "fp32", "bf16" or "fp16"
  /// Of what in config.json bears on the computation, and of an adapter's scale; empty: unknown.
  std::string config_sha256 = {};

  /// Whether what was kept is of another configuration.
  /// \param kept what its file says; empty, as in files of older versions: that is unknown
  bool HasOtherConfig(const std::string& kept) const {
    return !kept.empty() && !config_sha256.empty() && kept != config_sha256;
  }
  bool operator==(const ContextIdentity&) const = default;
};

/// Not thread-safe.
class ContextCacheWriter {
 public:
  /// \param folder does not exist yet
  /// \throws Error{kUsage, kIo}
  ContextCacheWriter(const std::string& folder, ContextIdentity identity);
  /// \param id none twice
  /// \throws Error{kBadInput} on an id that was there before; Error{kIo}
  void Add(const std::string& id, const CachedContext& context);
  /// \throws Error{kIo}
  void Commit();

 private:
  AtomicFolder folder_;
  ContextIdentity identity_;
  std::map<std::string, std::string> files_;  ///< by id
  std::string index_;
};

/// Constant: of any thread.
class ContextCache {
 public:
  /// \throws Error{kBadInput} on a folder that is none, names an id twice, or is another model's or of
  ///     another precision; Error{kIo}
  ContextCache(const std::string& folder, const ContextIdentity& identity);
  size_t size() const { return files_.size(); }
  /// \throws Error{kBadInput} on an id that it has not, or a file that is damaged, of another mask, or of
  ///     keys at other positions; Error{kIo}
  CachedContext Read(const std::string& id) const;

 private:
  struct File {
    std::string name;
    std::string sha256;  ///< hexadecimal; empty: an index of before it was written does not say it
    std::optional<int64_t> tokens = {};  ///< as the index says; absent: it does not
    std::string mask = {};               ///< likewise; empty: it does not
  };

  std::string folder_;
  ContextIdentity identity_;
  std::map<std::string, File> files_;  ///< by id
};

}  // namespace trainwright
