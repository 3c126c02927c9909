#include "lib/spec/rope_json.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace trainwright {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

struct RopeTypeName {
  RopeType type;
  const char* name;
};
constexpr RopeTypeName kRopeTypes[] = {{RopeType::kDefault, "default"},   {RopeType::kLinear, "linear"},
                                       {RopeType::kDynamic, "dynamic"},   {RopeType::kYarn, "yarn"},
                                       {RopeType::kLongrope, "longrope"}, {RopeType::kLlama3, "llama3"}};

/// A scaling's own numbers, beside its type.
void ReadScaling(const ConfigFields& fields, RopeParameters* rope) {
  const auto positive = [&](const char* name, double value) {
    if (!(value > 0)) fields.Refuse(name, "must be positive");
    return value;
  };
  const auto optional = [&](const char* name) -> std::optional<double> {
    if (fields.Field(name).is_null()) return std::nullopt;
    return fields.Number(name, 0);
  };
  const auto factors = [&](const char* name) {
    std::vector<double> values;
    const json& list = fields.Field(name);
    if (!list.is_array()) fields.Refuse(name, "is no list of numbers");
    for (const json& value : list) {
      if (!value.is_number()) fields.Refuse(name, "is no list of numbers");
      values.push_back(positive(name, value.get<double>()));
    }
    return values;
  };
  if (rope->type == RopeType::kDefault) return;
  const bool may_lack_factor = rope->type == RopeType::kYarn || rope->type == RopeType::kLongrope;
  if (may_lack_factor && fields.Field("factor").is_null()) {
    rope->factor = rope->factor / static_cast<double>(rope->original_positions);  // of the whole context
  } else {
    rope->factor = positive("factor", fields.RequiredNumber("factor"));
  }
  if (rope->type == RopeType::kYarn) {
    const auto or_usual = [](double value, double usual) { return value == 0 ? usual : value; };
    rope->attention_factor = optional("attention_factor");
    rope->mscale = optional("mscale");
    rope->mscale_all_dim = optional("mscale_all_dim");
    rope->beta_fast = positive("beta_fast", or_usual(fields.Number("beta_fast", 0), 32));
    rope->beta_slow = positive("beta_slow", or_usual(fields.Number("beta_slow", 0), 1));
    rope->truncate = fields.Flag("truncate", true);
  } else if (rope->type == RopeType::kLongrope) {
    rope->attention_factor = optional("attention_factor");
    rope->short_factors = factors("short_factor");
    rope->long_factors = factors("long_factor");
  } else if (rope->type == RopeType::kLlama3) {
    rope->low_freq_factor = positive("low_freq_factor", fields.RequiredNumber("low_freq_factor"));
    rope->high_freq_factor = positive("high_freq_factor", fields.RequiredNumber("high_freq_factor"));
    if (rope->low_freq_factor == rope->high_freq_factor) {
      fields.Refuse("high_freq_factor", "must differ from low_freq_factor");
    }
  }
}

/// \param with_theta the spelling of 5.x, rope_parameters
ordered_json RopeJson(const RopeParameters& rope, bool with_theta, bool with_share) {
  ordered_json out;
  const auto optional = [&](const char* name, const std::optional<double>& value) {
    if (value) out[name] = *value;
  };
  if (rope.type == RopeType::kYarn || rope.type == RopeType::kLongrope) {
    optional("attention_factor", rope.attention_factor);
  }
  if (rope.type == RopeType::kYarn) {
    out["beta_fast"] = rope.beta_fast;
    out["beta_slow"] = rope.beta_slow;
  }
  if (rope.type != RopeType::kDefault) out["factor"] = rope.factor;
  if (rope.type == RopeType::kLlama3) {
    out["high_freq_factor"] = rope.high_freq_factor;
    out["low_freq_factor"] = rope.low_freq_factor;
  }
  if (rope.type == RopeType::kLongrope) {
    out["long_factor"] = rope.long_factors;
    out["short_factor"] = rope.short_factors;
  }
  if (rope.type == RopeType::kYarn) {
    optional("mscale", rope.mscale);
    optional("mscale_all_dim", rope.mscale_all_dim);
    out["truncate"] = rope.truncate;
  }
  if (rope.type == RopeType::kYarn || rope.type == RopeType::kLongrope || rope.type == RopeType::kLlama3) {
    out["original_max_position_embeddings"] = rope.original_positions;
  }
  if (with_share) out["partial_rotary_factor"] = rope.partial_rotary_factor;
  if (with_theta) out["rope_theta"] = rope.theta;
  const auto named = std::find_if(std::begin(kRopeTypes), std::end(kRopeTypes),
                                  [&](const RopeTypeName& known) { return known.type == rope.type; });
  out["rope_type"] = named->name;
  return out;
}

/// Beside the scaling, where alone transformers 4 looks for the context before longrope. Not of one that is
/// the whole context: version 4 would take the quotient of both for the factor.
void WriteOriginalPositions(const ModelConfig& config, ordered_json* out) {
  const RopeParameters& rope = config.rope;
  if (rope.type != RopeType::kLongrope || rope.original_positions == config.max_positions) return;
  (*out)["original_max_position_embeddings"] = rope.original_positions;
}

}  // namespace

RopeParameters ReadRope(const ConfigFields& fields, const ModelConfig& config, const RopeParameters& usual) {
  RopeParameters rope = usual;
  rope.theta = fields.Number("rope_theta", usual.theta);
  rope.partial_rotary_factor = fields.Number("partial_rotary_factor", usual.partial_rotary_factor);
  const json &scaling = fields.Field("rope_scaling"), &parameters = fields.Field("rope_parameters");
  const char* name =
      scaling.is_null() || scaling.empty() ? "rope_parameters" : "rope_scaling";  // as transformers
  const json& object = fields.Field(name);
  if (!object.is_null() && !object.is_object()) fields.Refuse(name, "is no object");
  static const json kEmpty = json::object();
  const ConfigFields inner = fields.Within(object.is_null() ? kEmpty : object, std::string(name) + ".");
  const json& type = inner.Field(inner.Field("rope_type").is_null() ? "type" : "rope_type");
  inner.Field("type");
  const auto found =
      std::find_if(std::begin(kRopeTypes), std::end(kRopeTypes), [&](const RopeTypeName& known) {
        return type.is_null() ? known.type == RopeType::kDefault : type == known.name;
      });
  if (found == std::end(kRopeTypes)) inner.Refuse("rope_type", type.dump() + " is not supported");
  rope.type = found->type;
  rope.theta = inner.Number("rope_theta", rope.theta);
  if (parameters.is_object() && parameters.value("rope_theta", json(rope.theta)) != rope.theta) {
    fields.Refuse("rope_parameters.rope_theta", "differs from the rope_theta of rope_scaling");
  }
  rope.partial_rotary_factor = inner.Number("partial_rotary_factor", rope.partial_rotary_factor);
  if (!(rope.theta > 0)) fields.Refuse("rope_theta", "must be positive");
  if (!(rope.partial_rotary_factor > 0 && rope.partial_rotary_factor <= 1) ||
      rope.pairs(config.head_dim) < 1) {
    fields.Refuse("partial_rotary_factor", "must leave at least one element of a head, and at most all");
  }
  if (2 * rope.pairs(config.head_dim) > config.head_dim)
    fields.Refuse("head_dim", "must be even to turn whole");
  if (rope.type == RopeType::kDynamic) {
    rope.original_positions = config.max_positions;
    if (rope.RotaryShare(config.head_dim) <= 2) fields.Refuse("head_dim", "is too small for dynamic scaling");
  } else if (rope.type == RopeType::kYarn || rope.type == RopeType::kLongrope ||
             rope.type == RopeType::kLlama3) {
    rope.original_positions = inner.Integer("original_max_position_embeddings", config.max_positions);
    rope.original_positions = fields.Integer("original_max_position_embeddings", rope.original_positions);
    if (rope.original_positions <= 0) inner.Refuse("original_max_position_embeddings", "must be positive");
  }
  if (rope.type == RopeType::kYarn && rope.theta == 1.0)
    fields.Refuse("rope_theta", "must not be 1 under yarn");
  rope.factor = static_cast<double>(config.max_positions);  // what a factor that is absent is derived from
  ReadScaling(inner, &rope);
  if (rope.type == RopeType::kDefault) rope.factor = usual.factor;
  inner.RefuseUnreadWithoutExceptions();
  const auto pairs = static_cast<size_t>(rope.pairs(config.head_dim));
  if (rope.type == RopeType::kLongrope &&
      (rope.short_factors.size() != pairs || rope.long_factors.size() != pairs)) {
    inner.Refuse("short_factor and long_factor", "must have " + std::to_string(pairs) + " numbers");
  }
  return rope;
}

void WriteRope(const ModelConfig& config, ordered_json* out) {
  const RopeParameters& rope = config.rope;
  (*out)["rope_parameters"] = RopeJson(rope, /*with_theta=*/true, /*with_share=*/false);
  if (rope.type != RopeType::kDefault) {
    (*out)["rope_scaling"] = RopeJson(rope, /*with_theta=*/false, /*with_share=*/false);
  }
  (*out)["rope_theta"] = rope.theta;
  WriteOriginalPositions(config, out);
}

void WriteRopeOfAShare(const ModelConfig& config, ordered_json* out) {
  const RopeParameters& rope = config.rope;
  (*out)["rope_parameters"] = RopeJson(rope, /*with_theta=*/true, /*with_share=*/true);
  if (rope.type != RopeType::kDefault) {
    (*out)["rope_scaling"] = RopeJson(rope, /*with_theta=*/false, /*with_share=*/false);
  }
  (*out)["rotary_emb_base"] = rope.theta;
  (*out)["rotary_pct"] = rope.partial_rotary_factor;
  WriteOriginalPositions(config, out);
}

}  // namespace trainwright
