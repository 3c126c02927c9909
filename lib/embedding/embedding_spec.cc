#include "lib/embedding/embedding_spec.h"

#include <nlohmann/json.hpp>

#include "lib/base/error.h"
#include "lib/formats/json_fields.h"
#include "lib/formats/json_text.h"

namespace trainwright {
namespace {

using nlohmann::json;

constexpr char kSchema[] = "trainwright.embedding/1";
constexpr char kQueryTemplate[] = "query_template", kPassageTemplate[] = "passage_template";

[[noreturn]] void Refuse(const std::string& path, const std::string& field, const std::string& problem) {
  throw Error(ErrorCode::kBadInput, path, "its " + field + " " + problem);
}

int64_t ReadCount(const json& object, const char* name, const std::string& path) {
  int64_t count = 0;
  ReadField(object, name, path, &count);
  if (count < 0) Refuse(path, name, "is negative: " + std::to_string(count));
  return count;
}

EmbeddingSpec FromObject(const json& object, const std::string& path) {
  const auto text = [&](const char* name) { return object.at(name).get<std::string>(); };
  if (text("schema") != kSchema) {
    throw Error(ErrorCode::kBadInput, path, "is of another version: " + text("schema").substr(0, 40), "",
                "this build reads " + std::string(kSchema));
  }
  EmbeddingSpec spec;
  const std::optional<Pooling> pooling = FindPooling(text("pooling"));
  if (!pooling) Refuse(path, "pooling", "is unknown: " + text("pooling").substr(0, 40));
  spec.pooling = *pooling;
  spec.attention = text("attention");
  const std::optional<AttentionMask> mask = FindEmbeddingMask(spec.attention);
  if (!mask) Refuse(path, "attention", "is unknown: " + spec.attention.substr(0, 40));
  spec.mask = *mask;
  const std::optional<Similarity> similarity = FindSimilarity(text("similarity"));
  if (!similarity) Refuse(path, "similarity", "is unknown: " + text("similarity").substr(0, 40));
  spec.similarity = *similarity;
  ReadField(object, "normalize", path, &spec.normalize);
  spec.projection = ReadCount(object, "projection", path);
  spec.query_max_len = ReadCount(object, "query_max_len", path);
  spec.passage_max_len = ReadCount(object, "passage_max_len", path);
  spec.template_text = text("template");
  if (object.contains(kQueryTemplate)) spec.query_template = text(kQueryTemplate);
  if (object.contains(kPassageTemplate)) spec.passage_template = text(kPassageTemplate);
  spec.dimension = ReadCount(object, "dimension", path);
  return spec;
}

}  // namespace

std::optional<AttentionMask> FindEmbeddingMask(std::string_view attention) {
  if (attention == "bbcc" || attention == "bb") return AttentionMask::kBidirectional;
  if (attention == "cccc" || attention == "cc") return AttentionMask::kCausal;
  return std::nullopt;
}

std::string DescribeOtherEmbedding(const EmbeddingSpec& start, const EmbeddingSpec& trained) {
  std::string text;
  const auto add = [&](const char* what, const std::string& now, const std::string& before) {
    if (now != before) text += (text.empty() ? "" : ", ") + std::string(what) + now + " instead of " + before;
  };
  add("pooling ", PoolingName(trained.pooling), PoolingName(start.pooling));
  if (trained.mask != start.mask) add("attn ", trained.attention, start.attention);
  add("projection ", std::to_string(trained.projection), std::to_string(start.projection));
  add("normalize ", trained.normalize ? "on" : "off", start.normalize ? "on" : "off");
  add("similarity ", SimilarityName(trained.similarity), SimilarityName(start.similarity));
  return text;
}

nlohmann::ordered_json DescribeEmbedding(const EmbeddingSpec& spec) {
  nlohmann::ordered_json description = {{"pooling", PoolingName(spec.pooling)},
                                        {"attention", spec.attention},
                                        {"normalize", spec.normalize},
                                        {"dimension", spec.dimension},
                                        {"projection", spec.projection},
                                        {"query_max_len", spec.query_max_len},
                                        {"passage_max_len", spec.passage_max_len},
                                        {"template", spec.template_text}};
  if (spec.query_template) description[kQueryTemplate] = *spec.query_template;
  if (spec.passage_template) description[kPassageTemplate] = *spec.passage_template;
  return description;
}

std::string EncodeEmbeddingSpec(const EmbeddingSpec& spec) {
  TRAINWRIGHT_CHECK(FindEmbeddingMask(spec.attention) == spec.mask);
  nlohmann::ordered_json object = {{"schema", kSchema}};
  object.update(DescribeEmbedding(spec));
  object["similarity"] = SimilarityName(spec.similarity);
  return object.dump(2) + "\n";
}

EmbeddingSpec DecodeEmbeddingSpec(const std::string& text, const std::string& path) {
  const json object = ParseJson(text, path);
  try {
    return FromObject(object, path);
  } catch (const json::exception&) {
    throw Error(ErrorCode::kBadInput, path,
                "is no description of an embedding: a field is missing or of the wrong type");
  }
}

}  // namespace trainwright
