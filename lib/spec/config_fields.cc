#include "lib/spec/config_fields.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "lib/base/error.h"

namespace trainwright {
namespace {

using nlohmann::json;

/// What transformers writes into any config.json and no forward pass of any family reads: how to
/// generate, label, log and load; and what common tools add.
constexpr std::string_view kHarmless[] = {
    "_attn_implementation_autoset",
    "_commit_hash",
    "_flash_attn_2_enabled",
    "_name_or_path",
    "_num_labels",
    "architectures",
    "attn_implementation",
    "auto_map",
    "bad_words_ids",
    "begin_suppress_tokens",
    "chunk_size_feed_forward",
    "classifier_dropout",
    "custom_pipelines",
    "decoder_start_token_id",
    "diversity_penalty",
    "do_sample",
    "dtype",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "exponential_decay_length_penalty",
    "finetuning_task",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "gradient_checkpointing",
    "id2label",
    "is_decoder",
    "is_llama_config",
    "keys_to_ignore_at_inference",
    "label2id",
    "length_penalty",
    "max_length",
    "max_sequence_length",
    "min_length",
    "model_max_length",
    "model_type",
    "n_ctx",
    "name_or_path",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_labels",
    "num_return_sequences",
    "output_attentions",
    "output_hidden_states",
    "output_scores",
    "prefix",
    "pretraining_tp",
    "problem_type",
    "remove_invalid_values",
    "repetition_penalty",
    "return_dict",
    "return_dict_in_generate",
    "sep_token_id",
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "tf_legacy_loss",
    "tie_encoder_decoder",
    "tokenizer_class",
    "top_k",
    "top_p",
    "torch_dtype",
    "torchscript",
    "transformers.js_config",
    "transformers_version",
    "typical_p",
    "unsloth_fixed",
    "unsloth_version",
    "use_bfloat16",
    "use_cache",
};
static_assert(std::is_sorted(std::begin(kHarmless), std::end(kHarmless)));

/// Whether the value asks for nothing. So does false or 0 of a field that no family reads: those that are on
/// in transformers' models of these families where a file lacks them are read (is_causal, scale_attn_weights,
/// use_parallel_residual, attention_bias of GPT-NeoX).
bool IsNothing(const json& value) {
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_number()) return value == 0;
  return value.is_null() || ((value.is_string() || value.is_structured()) && value.empty()) || value == "";
}

}  // namespace

void ConfigFields::Refuse(const std::string& field, const std::string& problem) const {
  throw Error(ErrorCode::kBadInput, path_, prefix_ + field + " " + problem, "", hint_);
}

void ConfigFields::RefuseValue(const std::string& field, const std::string& problem,
                               const std::string& hint) const {
  throw Error(ErrorCode::kBadInput, path_, prefix_ + field + " " + problem, "", hint);
}

const json& ConfigFields::Field(const std::string& name) const {
  static const json kNull;
  read_.insert(name);
  const auto found = object_.find(name);
  return found == object_.end() ? kNull : *found;
}

int64_t ConfigFields::Integer(const std::string& name, int64_t absent) const {
  const json& value = Field(name);
  if (value.is_null()) return absent;
  if (!value.is_number_integer()) Refuse(name, "is no integer");
  return value.get<int64_t>();
}

int64_t ConfigFields::RequiredInteger(const std::string& name) const {
  if (Field(name).is_null()) Refuse(name, "is missing");
  const int64_t value = Integer(name, 0);
  if (value <= 0) Refuse(name, "must be positive, not " + std::to_string(value));
  if (value > INT32_MAX) Refuse(name, "is too large");
  return value;
}

double ConfigFields::Number(const std::string& name, double absent) const {
  const json& value = Field(name);
  if (value.is_null()) return absent;
  if (!value.is_number()) Refuse(name, "is no number");
  return value.get<double>();
}

double ConfigFields::RequiredNumber(const std::string& name) const {
  if (Field(name).is_null()) Refuse(name, "is missing");
  return Number(name, 0);
}

bool ConfigFields::Flag(const std::string& name, bool absent) const {
  const json& value = Field(name);
  if (value.is_null()) return absent;
  if (!value.is_boolean()) Refuse(name, "is neither true nor false");
  return value.get<bool>();
}

void ConfigFields::RequireFlag(const std::string& name, bool usual) const {
  if (Flag(name, usual) != usual) Refuse(name, std::string(usual ? "false" : "true") + " is not supported");
}

int64_t ConfigFields::Id(const std::string& name) const {
  const json& value = Field(name);
  if (value.is_array() && !value.empty() && value[0].is_number_integer()) return value[0].get<int64_t>();
  return Integer(name, -1);
}

std::vector<int64_t> ConfigFields::Ids(const std::string& name) const {
  const json& value = Field(name);
  std::vector<int64_t> ids;
  for (const json& id : value.is_array() && !value.empty() ? value : json::array({Integer(name, -1)})) {
    if (!id.is_number_integer()) Refuse(name, "is neither an id nor a list of ids");
    if (id.get<int64_t>() >= 0) ids.push_back(id.get<int64_t>());
  }
  return ids;
}

void ConfigFields::RefuseUnread() const {
  for (const auto& [name, value] : object_.items()) {
    const bool harmless =
        std::binary_search(std::begin(kHarmless), std::end(kHarmless), std::string_view(name));
    if (!harmless && !read_.contains(name) && !IsNothing(value)) {
      Refuse(name, "is not known, and may change what the model computes");
    }
  }
}

void ConfigFields::RefuseUnreadWithoutExceptions() const {
  for (const auto& [name, value] : object_.items()) {
    if (!read_.contains(name) && !value.is_null()) Refuse(name, "is not supported");
  }
}

}  // namespace trainwright
