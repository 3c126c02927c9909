#include "lib/embedding/text_encoder.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <exception>
#include <numeric>
#include <string>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/signals.h"
#include "lib/dist/gather_rows.h"
#include "lib/dist/shared_work.h"
#include "lib/model/projected_rows.h"

namespace trainwright {
namespace {

void CheckTexts(std::span<const EncodedText> texts) {
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].tokens.size() > texts[i].instruction_tokens) continue;
    throw Error(ErrorCode::kBadInput, "text " + std::to_string(i + 1),
                "has no token after the " + std::to_string(texts[i].instruction_tokens) +
                    " of its instruction, so nothing to pool");
  }
}

/// Which rank computes a pass.
int64_t OwnerOf(size_t pass, int64_t ranks) {
  return static_cast<int64_t>(pass) % ranks;
}

}  // namespace

TextEncoder::TextEncoder(LanguageModel* model, const EmbeddingSpec& spec, const EncoderOptions& options)
    : model_(model), spec_(spec), options_(options), dimension_(model->config().hidden_size) {
  TRAINWRIGHT_CHECK(options.tokens_per_pass > 0 && options.truncate_dim >= 0);
  if (spec.projection > 0) {
    const std::optional<size_t> projection = model->body().projection();
    if (!projection || model->parameters().all()[*projection].shape[0] != spec.projection) {
      throw Error(ErrorCode::kUsage, "the model",
                  "has no projection to " + std::to_string(spec.projection) + " elements");
    }
    dimension_ = spec.projection;
  }
  if (options.truncate_dim > dimension_) {
    throw Error(ErrorCode::kUsage, "--truncate-dim",
                std::to_string(options.truncate_dim) + " is more than the " + std::to_string(dimension_) +
                    " elements of the model's vectors");
  }
  if (options.truncate_dim > 0) dimension_ = options.truncate_dim;
}

std::vector<TextEncoder::Pass> TextEncoder::PassesOf(std::span<const EncodedText> texts) const {
  std::vector<size_t> order(texts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return texts[a].tokens.size() > texts[b].tokens.size(); });
  std::vector<Pass> passes;
  int64_t tokens = 0;  // of the last pass
  for (const size_t text : order) {
    const auto own = static_cast<int64_t>(texts[text].tokens.size());
    if (passes.empty() || options_.batch_invariant || tokens + own > options_.tokens_per_pass) {
      passes.emplace_back();
      tokens = 0;
    }
    passes.back().push_back(text);
    tokens += own;
  }
  return passes;
}

at::Tensor TextEncoder::Finish(at::Tensor pooled_td) const {
  at::Tensor vectors = std::move(pooled_td);
  if (spec_.projection > 0) vectors = Projected(model_->body(), vectors);
  if (vectors.size(1) > dimension_) {
    vectors = vectors.narrow(1, 0, dimension_).clone(at::MemoryFormat::Contiguous);
  }
  if (spec_.normalize) {
    at::Tensor norms = at::empty({vectors.size(0)}, vectors.options());
    NormalizeRows(vectors, norms);
  }
  return vectors;
}

at::Tensor TextEncoder::EncodePass(std::span<const EncodedText> texts, const Pass& pass) {
  std::vector<int64_t> tokens, positions;
  PooledSpans spans;
  BodyInput input;
  input.span_starts = {0};
  for (const size_t number : pass) {
    const EncodedText& text = texts[number];
    spans.begin.push_back(input.span_starts.back());
    spans.first_pooled.push_back(spans.begin.back() + static_cast<int32_t>(text.instruction_tokens));
    spans.end.push_back(spans.begin.back() + static_cast<int32_t>(text.tokens.size()));
    input.span_starts.push_back(spans.end.back());
    tokens.insert(tokens.end(), text.tokens.begin(), text.tokens.end());
    for (size_t i = 0; i < text.tokens.size(); ++i) positions.push_back(static_cast<int64_t>(i));
  }
  const auto longs = at::TensorOptions().dtype(at::kLong);
  input.tokens_n = at::tensor(tokens, longs);
  input.positions_n = at::tensor(positions, longs);
  input.mask = spec_.mask;
  const at::Tensor hidden_nd = model_->body().Forward(input, Keep::kNothing);
  return Finish(Pooled(spec_.pooling, spans, hidden_nd));
}

at::Tensor TextEncoder::EncodeOwn(std::span<const EncodedText> texts, const std::vector<Pass>& passes) {
  int64_t rows = 0;
  for (size_t i = 0; i < passes.size(); ++i) {
    const bool is_own = OwnerOf(i, options_.world->size()) == options_.world->rank();
    if (is_own) rows += static_cast<int64_t>(passes[i].size());
  }
  const at::TensorOptions options = model_->parameters().values().options();
  const at::Tensor vectors = at::empty({rows, dimension_}, options.dtype(at::kFloat));
  int64_t row = 0;
  for (size_t i = 0; i < passes.size(); ++i) {
    if (OwnerOf(i, options_.world->size()) != options_.world->rank()) continue;
    ThrowIfStopped();
    const auto count = static_cast<int64_t>(passes[i].size());
    vectors.narrow(0, row, count).copy_(EncodePass(texts, passes[i]));
    row += count;
  }
  if (!vectors.isfinite().all().item<bool>()) {
    throw Error(ErrorCode::kNonFinite, "vectors", "are not finite", "",
                "a weight is not finite, or values overflow: with bf16 or fp16 try --mixed-precision no");
  }
  return vectors;
}

at::Tensor TextEncoder::Encode(std::span<const EncodedText> texts) {
  CheckTexts(texts);
  const std::vector<Pass> passes = PassesOf(texts);
  at::Tensor own;
  std::exception_ptr failure;
  try {
    own = EncodeOwn(texts, passes);
  } catch (...) {
    failure = std::current_exception();
  }
  ShareEnd(options_.world, failure);
  std::vector<int64_t> rows_of_rank(static_cast<size_t>(options_.world->size()), 0);
  std::vector<std::vector<int64_t>> texts_of_rank(rows_of_rank.size());
  for (size_t i = 0; i < passes.size(); ++i) {
    const auto owner = static_cast<size_t>(OwnerOf(i, options_.world->size()));
    rows_of_rank[owner] += static_cast<int64_t>(passes[i].size());
    size_t tokens = 0;
    for (const size_t text : passes[i]) {
      texts_of_rank[owner].push_back(static_cast<int64_t>(text));
      tokens += texts[text].tokens.size();
    }
    counts_.texts += static_cast<int64_t>(passes[i].size());
    counts_.tokens += static_cast<int64_t>(tokens);
    counts_.tokens_if_padded += static_cast<int64_t>(passes[i].size() * texts[passes[i][0]].tokens.size());
  }
  const at::Tensor all = GatherRows(options_.world, own, rows_of_rank);
  std::vector<int64_t> places;  // of the rows of `all`
  for (const std::vector<int64_t>& of_rank : texts_of_rank) {
    places.insert(places.end(), of_rank.begin(), of_rank.end());
  }
  at::Tensor vectors = at::empty_like(all);
  if (places.empty()) return vectors;
  const auto longs = at::TensorOptions().dtype(at::kLong);
  vectors.index_copy_(0, at::tensor(places, longs).to(all.device()), all);
  return vectors;
}

}  // namespace trainwright
