/// Where the loaders of a run are; goes into checkpoints.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace trainwright {

/// Where a loader reads next.
struct SampleCursor {
  uint64_t epoch = 0;
  uint64_t window = 0;  ///< within the epoch
  uint64_t sample = 0;  ///< within the window
  /// Samples given since the stream began, where the order numbers them (SampleOrderOptions::numbered): the
  /// number of the next one. Else 0.
  uint64_t taken = 0;
  bool operator==(const SampleCursor&) const = default;
};

struct LoaderState {
  SampleCursor cursor;
  std::vector<uint64_t> bad_chunks = {};  ///< that others took the places of, ascending
  std::string order_fingerprint = {};     ///< of the order that the cursor is in
  bool operator==(const LoaderState&) const = default;
};

/// The loaders of a run by name. Every run has kMainLoader; others read other sets, or the same ones in
/// another order, each at its own pace.
using LoaderStates = std::map<std::string, LoaderState>;
inline constexpr char kMainLoader[] = "data";

/// Writes the states into the object of a training state: those of kMainLoader as its fields cursor,
/// order_fingerprint and, where there are any, bad_chunks; those of others, where there are any, by their
/// names in the field loaders. Fields that the object has already keep their places in it.
/// \param states with kMainLoader
void EncodeLoaderStates(const LoaderStates& states, nlohmann::ordered_json* json);
/// \param path for the messages
/// \throws Error{kBadInput}; nlohmann::json::exception on a missing field or other type
LoaderStates DecodeLoaderStates(const nlohmann::json& json, const std::string& path);

}  // namespace trainwright
