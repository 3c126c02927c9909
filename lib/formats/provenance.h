/// Where an artefact comes from: the tool, its version, the options that shape the content, and its inputs.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace trainwright {

/// One input of a tool. Either field may be empty: a pipe's hash is not known before it ends.
struct ProvenanceInput {
  std::string hash;             ///< "xxh3:<16 hex digits>" or "sha256:<64 hex digits>"
  std::string provenance_json;  ///< the input's own provenance, which is nested into the new one
};

/// Canonical JSON: {"inputs":[{"hash":...,"provenance":{...}},...],"options":{...},"tool":...,"version":...}.
/// \param options those that shape the content alone: no threads, paths, progress, clock or host
/// \throws Error{kBadInput} when an input's provenance is no JSON
std::string MakeProvenance(const std::string& tool, const nlohmann::json& options,
                           const std::vector<ProvenanceInput>& inputs);

/// Of what was made of several things: their provenance where it is one, else a list of each, as in a
/// mixture. Those that are null say nothing.
/// \returns null where all are
nlohmann::ordered_json JoinedProvenance(const std::vector<nlohmann::ordered_json>& all);

/// The options of each run of a tool in a provenance or a list of them, its own or among its inputs, once
/// each; such as are no objects are left out.
std::vector<nlohmann::ordered_json> OptionsInProvenance(const nlohmann::ordered_json& provenance,
                                                        const std::string& tool);

/// What all runs of a tool in a provenance have as a flag of their options. A run of pack that made documents
/// of other programs' ids counts as one of pretokenize, which makes them else.
/// \returns nullopt when there are no such runs, or they differ
std::optional<bool> FlagInProvenance(const nlohmann::ordered_json& provenance, const std::string& tool,
                                     const std::string& name);

/// "xxh3:0123456789abcdef".
std::string HashName(uint64_t xxh3);

}  // namespace trainwright
