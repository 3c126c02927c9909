/// A file with the state of one sequence of a recurrent model, from which generation goes on: safetensors,
/// F32,
///   layers.<l>.scan               [2, K]        real and imaginary parts of the state
///   layers.<l>.conv               [taps-1, 2K]  inputs of the convolution, the latest one last
///   layers.<l>.windows.<i>.scan, .sum, .seen   of the multi-scale block; seen [1]: a count
///   hidden                        [D]           after the last token
/// with the metadata format, model_sha256, config_sha256, precision, init, tokens and sha256, that of all
/// tensors' bytes in the order of the file. A file of an older version, which has no sha256 or no
/// config_sha256, is read without that check.
#pragma once

#include <string>

#include "lib/base/bytes.h"
#include "lib/io/byte_sink.h"
#include "lib/model/context_cache.h"
#include "lib/model/recurrent_state.h"

namespace trainwright {

/// The caller commits.
/// \param state of a sequence with tokens, on the host
/// \throws Error{kIo}
void WriteState(ByteSink* sink, const ContextIdentity& identity, const RecurrentState& state);

/// \param path for messages
/// \returns the state, on the host; whether its shapes are the model's is seen by BodyDecoder::ImportState
/// \throws Error{kBadInput} on a file that is none or is damaged or holds what is not finite, and on
///     another model's, configuration's or precision
RecurrentState DecodeState(ByteSpan file, const std::string& path, const ContextIdentity& identity);

}  // namespace trainwright
