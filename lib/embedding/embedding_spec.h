/// How a model makes vectors of texts: what belongs to its weights as much as the configuration of its body.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "lib/dist/world.h"
#include "lib/embedding/similarity.h"
#include "lib/nn/attention/attention_shape.h"
#include "lib/nn/pooling/pooling.h"

namespace trainwright {

inline constexpr char kEmbeddingFileName[] = "embedding.json";

struct EmbeddingSpec {
  Pooling pooling = Pooling::kMean;
  AttentionMask mask = AttentionMask::kBidirectional;  ///< that `attention` means for texts to embed
  /// bbcc, cccc, bb or cc: the attention of instruction and text when a text is embedded, and likewise when
  /// one is generated, b bidirectional and c causal.
  std::string attention = "bbcc";
  bool normalize = true;   ///< vectors have unit length
  int64_t projection = 0;  ///< elements of a linear layer's result after the pooling; 0: there is none
  /// Tokens of the longest texts it was trained with, instructions among them; 0: nobody said.
  int64_t query_max_len = 0, passage_max_len = 0;
  std::string
      template_text;  ///< how a text and its instruction are written (ChatTemplate); empty: as they are
  /// Likewise of texts of a role that come without an instruction; nothing: as all others.
  std::optional<std::string> query_template, passage_template;
  int64_t dimension = 0;  ///< elements of a vector; 0: nobody said
  Similarity similarity = Similarity::kCosine;

  bool operator==(const EmbeddingSpec&) const = default;
};

/// The mask of texts to embed; nothing where there is no such code.
std::optional<AttentionMask> FindEmbeddingMask(std::string_view attention);

/// What vectors of `trained` are made of, and compared by, that those of `start` are not: "pooling mean
/// instead of cls, projection 0 instead of 16"; empty: nothing. Lengths and template apart, which belong to
/// the texts.
std::string DescribeOtherEmbedding(const EmbeddingSpec& start, const EmbeddingSpec& trained);

/// What shapes the vectors beside the weights, for results: the fields by their names (the template as
/// "template"; those of roles only where there are any; no "mask").
nlohmann::ordered_json DescribeEmbedding(const EmbeddingSpec& spec);

/// The text of embedding.json: one object with the schema "trainwright.embedding/1", what DescribeEmbedding
/// gives, and "similarity", by which vectors are compared.
std::string EncodeEmbeddingSpec(const EmbeddingSpec& spec);

/// \param path for messages
/// \throws Error{kBadInput} naming the field
EmbeddingSpec DecodeEmbeddingSpec(const std::string& text, const std::string& path);

/// That of a model's folder: of its embedding.json, or of the files of sentence-transformers (modules.json
/// and what it names). Warns, on the writer, of what the files say and no EmbeddingSpec does.
/// \param body_folder has the config.json of the body, whose attention and positions that library takes: for
///     an adapter that of its base
/// \returns nothing where the folder has neither
/// \throws Error{kBadInput} on files that say what no EmbeddingSpec can; Error{kIo}
std::optional<EmbeddingSpec> ReadEmbeddingSpec(const std::string& folder, const std::string& body_folder,
                                               const World& world = *Solo());
/// Of a folder with a config.json of its own.
std::optional<EmbeddingSpec> ReadEmbeddingSpec(const std::string& folder);

}  // namespace trainwright
