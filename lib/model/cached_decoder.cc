#include "lib/model/cached_decoder.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "lib/base/error.h"
#include "lib/model/continuations.h"

namespace trainwright {
namespace {

/// Keys that are kept stay turned to their positions.
void RequireFixedPositions(bool depends_on_length) {
  if (!depends_on_length) return;
  throw Error(ErrorCode::kUsage, "the model",
              "has rotary positions that depend on the length, so no context can be kept for it");
}

}  // namespace

CachedDecoder::CachedDecoder(Transformer* body, int64_t max_tokens, int64_t sequences)
    : body_(*body), max_tokens_(max_tokens), lengths_(static_cast<size_t>(sequences), 0) {
  seen_.resize(lengths_.size());
  length_classes_.resize(lengths_.size());
  TRAINWRIGHT_CHECK(max_tokens <= body_.positions_limit() && sequences >= 1);
  const ModelConfig& config = body_.config();
  const auto options = at::TensorOptions().dtype(body_.numerics().storage).device(body_.device());
  const std::vector<int64_t> shape = {sequences, config.num_kv_heads, max_tokens, config.head_dim};
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    keys_bgmk_.push_back(at::empty(shape, options));
    values_bgmk_.push_back(at::empty(shape, options));
  }
}

at::Tensor CachedDecoder::AppendToEach(const std::vector<Continuation>& next, int64_t rows) {
  if (!depends_on_length()) return AppendToCache(next, rows);
  std::vector<Continuation> going_on;
  std::vector<int64_t> places;                   // of these in `next`
  std::vector<at::Tensor> again_d(next.size());  // of all others
  for (size_t i = 0; i < next.size(); ++i) {
    Continuation turned = next[i];
    if (TurnToLength(&turned)) {
      // A copy: the rows are the body's until its next pass.
      again_d[i] = AppendToCache({turned}, /*rows=*/0)[0].clone();
    } else {
      going_on.push_back(std::move(turned));
      places.push_back(static_cast<int64_t>(i));
    }
  }
  if (going_on.size() == next.size()) return AppendToCache(next, rows);

  const int64_t all_rows = std::max<int64_t>(rows, std::ssize(next));
  const auto options = at::TensorOptions().dtype(body_.numerics().storage).device(body_.device());
  const at::Tensor hidden_nd = at::zeros({all_rows, body_.config().hidden_size}, options);
  if (!going_on.empty()) {
    const at::Tensor last_nd = AppendToCache(going_on, rows);
    for (size_t i = 0; i < places.size(); ++i) {
      hidden_nd[places[i]].copy_(last_nd[static_cast<int64_t>(i)]);
    }
  }
  for (size_t i = 0; i < again_d.size(); ++i) {
    if (again_d[i].defined()) hidden_nd[static_cast<int64_t>(i)].copy_(again_d[i]);
  }
  return hidden_nd;
}

bool CachedDecoder::TurnToLength(Continuation* continuation) {
  const auto sequence = static_cast<size_t>(continuation->sequence);
  std::vector<int64_t>& seen = seen_[sequence];
  seen.insert(seen.end(), continuation->tokens.begin(), continuation->tokens.end());
  const int64_t length_class = body_.rope()->rope().LengthClass(std::ssize(seen));
  if (std::exchange(length_classes_[sequence], length_class) == length_class) return false;
  if (lengths_[sequence] == 0) return false;
  continuation->tokens = seen;
  lengths_[sequence] = 0;
  return true;
}

bool CachedDecoder::depends_on_length() const {
  const RopeTable* rope = body_.rope();
  return rope != nullptr && rope->rope().depends_on_length();
}

at::Tensor CachedDecoder::AppendToCache(const std::vector<Continuation>& next, int64_t rows) {
  return LastRowsOf(AppendRows(next, rows, AttentionMask::kCausal), next);
}

at::Tensor CachedDecoder::AppendRows(const std::vector<Continuation>& next, int64_t rows,
                                     AttentionMask mask) {
  std::vector<CachePlace> places;
  bool all_new = true;
  for (const auto& [sequence, tokens] : next) {
    const int64_t before = length(sequence);
    TRAINWRIGHT_CHECK(!tokens.empty() && before + static_cast<int64_t>(tokens.size()) <= max_tokens_);
    all_new = all_new && before == 0;
    for (size_t i = 0; i < tokens.size(); ++i) places.push_back({sequence, before + static_cast<int64_t>(i)});
  }
  TRAINWRIGHT_CHECK(!places.empty() && (all_new || mask == AttentionMask::kCausal));
  const DeviceInput input = PackContinuations(
      next, [this](int64_t sequence) { return length(sequence); }, rows, body_.config().vocab_size,
      body_.device());
  const Numerics& numerics = body_.numerics();
  const auto attend = [&](size_t layer, Transformer::Views& views) {
    const AttentionShape shape = body_.ShapeOf(input.num_tokens(), layer, mask);
    FillCache(shape, views.qkv, places, keys_bgmk_[layer], values_bgmk_[layer]);
    if (all_new) {
      PackedAttention(numerics, shape, views.qkv, input.spans, views.attention, views.lse_hn);
    } else {
      DecodeAttention(numerics, shape, views.qkv, places, keys_bgmk_[layer], values_bgmk_[layer],
                      views.attention);
    }
  };
  const at::Tensor hidden_nd = body_.ForwardWith(input, attend);
  for (const auto& [sequence, tokens] : next) {
    lengths_[static_cast<size_t>(sequence)] += static_cast<int64_t>(tokens.size());
  }
  return hidden_nd;
}

at::Tensor CachedDecoder::Prefill(int64_t sequence, const std::vector<int64_t>& tokens, AttentionMask mask) {
  TRAINWRIGHT_CHECK(length(sequence) == 0);
  if (depends_on_length()) {
    seen_[static_cast<size_t>(sequence)] = tokens;
    length_classes_[static_cast<size_t>(sequence)] = body_.rope()->rope().LengthClass(std::ssize(tokens));
  }
  return AppendRows({{sequence, tokens}}, /*rows=*/0, mask);
}

CacheTensors CachedDecoder::Export(int64_t sequence) const {
  RequireFixedPositions(depends_on_length());
  const auto copy_of = [&](const std::vector<at::Tensor>& caches_bgmk) {
    std::vector<at::Tensor> layers;
    for (const at::Tensor& cache_bgmk : caches_bgmk) {
      layers.push_back(cache_bgmk[sequence].narrow(1, 0, length(sequence)));
    }
    return at::stack(layers).cpu();
  };
  return {copy_of(keys_bgmk_), copy_of(values_bgmk_)};
}

void CachedDecoder::Import(int64_t sequence, const CacheTensors& cache) {
  RequireFixedPositions(depends_on_length());
  const ModelConfig& config = body_.config();
  const int64_t before = length(sequence), added = cache.keys_lgmk.dim() == 4 ? cache.keys_lgmk.size(2) : 0;
  const std::vector<int64_t> shape = {config.num_layers, config.num_kv_heads, added, config.head_dim};
  for (const at::Tensor* tensor : {&cache.keys_lgmk, &cache.values_lgmk}) {
    if (tensor->sizes() == at::IntArrayRef(shape) && tensor->scalar_type() == body_.numerics().storage) {
      continue;
    }
    throw Error(ErrorCode::kBadInput, "a context's keys and values",
                "are of another shape or type than the model's", "",
                "make them with the same model and precision");
  }
  TRAINWRIGHT_CHECK(before + added <= max_tokens_);
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    const auto place = static_cast<size_t>(layer);
    keys_bgmk_[place][sequence].narrow(1, before, added).copy_(cache.keys_lgmk[layer]);
    values_bgmk_[place][sequence].narrow(1, before, added).copy_(cache.values_lgmk[layer]);
  }
  lengths_[static_cast<size_t>(sequence)] += added;
}

void CachedDecoder::Fork(int64_t from, int64_t to, int64_t length) {
  TRAINWRIGHT_CHECK(length <= this->length(from));
  if (from != to) {
    for (const std::vector<at::Tensor>* caches : {&keys_bgmk_, &values_bgmk_}) {
      for (const at::Tensor& cache_bgmk : *caches) {
        cache_bgmk[to].narrow(1, 0, length).copy_(cache_bgmk[from].narrow(1, 0, length));
      }
    }
  }
  lengths_[static_cast<size_t>(to)] = length;
  const std::vector<int64_t>& seen = seen_[static_cast<size_t>(from)];  // empty where it does not matter
  seen_[static_cast<size_t>(to)] =
      std::vector<int64_t>(seen.begin(), seen.begin() + std::min<int64_t>(length, std::ssize(seen)));
  length_classes_[static_cast<size_t>(to)] = length_classes_[static_cast<size_t>(from)];
}

}  // namespace trainwright
