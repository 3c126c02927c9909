#include "lib/model/ten_decoder.h"

#include <ATen/ops/empty.h>

#include <array>
#include <iterator>
#include <map>
#include <string>

#include "lib/base/error.h"
#include "lib/model/continuations.h"
#include "lib/model/ten.h"
#include "lib/spec/ten_init.h"

namespace trainwright {
namespace {

/// Of one sequence in a pass.
constexpr int64_t kMostRows = 8192;

std::map<std::string, std::vector<int64_t>> ShapesOf(const RecurrentState& state) {
  std::map<std::string, std::vector<int64_t>> shapes;
  ForEachTensor(
      state, [&](const std::string& name, const at::Tensor& tensor) { shapes[name] = tensor.sizes().vec(); });
  return shapes;
}

[[noreturn]] void RefuseState(const std::string& problem) {
  throw Error(ErrorCode::kBadInput, "the state of a sequence", problem, "", "make it with the same model");
}

}  // namespace

TenDecoder::TenDecoder(Ten* body, int64_t sequences) : body_(*body) {
  TRAINWRIGHT_CHECK(sequences >= 1);
  empty_.layers = body_.NewState();
  empty_.init = TenInitName(body_.fields().init);
  sequences_.assign(static_cast<size_t>(sequences), {empty_, empty_, empty_});
}

at::Tensor TenDecoder::AppendToEach(const std::vector<Continuation>& next, int64_t rows) {
  std::vector<Continuation> rest = next;
  for (auto& [sequence, tokens] : rest) {
    auto begin = tokens.begin();
    for (; tokens.end() - begin > kMostRows; begin += kMostRows) {
      Pass({{sequence, std::vector<int64_t>(begin, begin + kMostRows)}}, /*rows=*/0);
    }
    tokens.erase(tokens.begin(), begin);
  }
  const at::Tensor hidden_nd = Pass(rest, rows);
  for (const auto& [sequence, tokens] : next) {
    Sequence& appended = At(sequence);
    const bool first = appended.now.tokens == appended.began.tokens + std::ssize(tokens);
    if (first || tokens.size() > 1) appended.prompted = appended.now;
  }
  return hidden_nd;
}

at::Tensor TenDecoder::Pass(const std::vector<Continuation>& next, int64_t rows) {
  const DeviceInput input = PackContinuations(
      next, [this](int64_t sequence) { return length(sequence); }, rows, body_.config().vocab_size,
      body_.device());
  std::vector<LayerStates*> states(input.spans.starts.size() - 1, nullptr);
  for (size_t i = 0; i < next.size(); ++i) states[i] = &At(next[i].sequence).now.layers;
  const at::Tensor last_nd = LastRowsOf(body_.ForwardFrom(input, states), next);
  // A copy: the rows are the body's until its next pass.
  const at::Tensor kept_bd =
      last_nd.narrow(0, 0, std::ssize(next)).to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
  for (size_t i = 0; i < next.size(); ++i) {
    RecurrentState& now = At(next[i].sequence).now;
    now.tokens += std::ssize(next[i].tokens);
    now.hidden_d = kept_bd[static_cast<int64_t>(i)];
  }
  return last_nd;
}

void TenDecoder::Fork(int64_t from, int64_t to, int64_t length) {
  const Sequence& source = At(from);
  const RecurrentState* state = nullptr;
  const std::array<const RecurrentState*, 4> candidates = {&empty_, &source.began, &source.prompted,
                                                           &source.now};
  for (const RecurrentState* candidate : candidates) {
    if (candidate->tokens == length) state = candidate;
  }
  TRAINWRIGHT_CHECK(state != nullptr);
  const RecurrentState chosen = *state;
  At(to) = {chosen, chosen, chosen};
}

RecurrentState TenDecoder::ExportState(int64_t sequence) const {
  return CopyTo(at::Device(at::kCPU), At(sequence).now);
}

void TenDecoder::ImportState(int64_t sequence, const RecurrentState& state) {
  if (state.init != empty_.init) RefuseState("is of init " + state.init + ", the model of " + empty_.init);
  RecurrentState expected = empty_;
  if (state.tokens > 0) expected.hidden_d = at::empty({body_.config().hidden_size}, at::kFloat);
  bool like = state.tokens >= 0 && ShapesOf(state) == ShapesOf(expected);
  const std::vector<int64_t>& lengths = body_.fields().windows;
  for (const LayerState& layer : state.layers) {
    like = like && layer.windows.size() == lengths.size();
    for (size_t i = 0; like && i < lengths.size(); ++i) {
      like = layer.windows[i].seen == state.tokens % lengths[i];
    }
  }
  if (!like) RefuseState("has another shape than the model's");
  const RecurrentState copy = CopyTo(body_.device(), state);
  At(sequence) = {copy, copy, copy};
}

}  // namespace trainwright
