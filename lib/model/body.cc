#include "lib/model/body.h"

#include "lib/base/error.h"
#include "lib/spec/family.h"

namespace trainwright {
namespace {

constexpr char kKeepsContexts[] = "embed --context-cache keeps the keys and values of a text";
constexpr char kKeepsStates[] = "generate --state-out keeps the state of a prompt";

Error NoKeysAndValues() {
  return Error(ErrorCode::kUsage, "the model", "has no keys and values, so its contexts cannot be kept", "",
               kKeepsStates);
}

Error NoState() {
  return Error(ErrorCode::kUsage, "the model", "has keys and values and no state of a recurrence", "",
               kKeepsContexts);
}

}  // namespace

at::Tensor BodyDecoder::Prefill(int64_t /*sequence*/, const std::vector<int64_t>& /*tokens*/,
                                AttentionMask /*mask*/) {
  throw NoKeysAndValues();
}

CacheTensors BodyDecoder::Export(int64_t /*sequence*/) const {
  throw NoKeysAndValues();
}

void BodyDecoder::Import(int64_t /*sequence*/, const CacheTensors& /*cache*/) {
  throw NoKeysAndValues();
}

RecurrentState BodyDecoder::ExportState(int64_t /*sequence*/) const {
  throw NoState();
}

void BodyDecoder::ImportState(int64_t /*sequence*/, const RecurrentState& /*state*/) {
  throw NoState();
}

void RequireState(const Body& body, const std::string& flag) {
  if (body.carries_state()) return;
  throw Error(ErrorCode::kUsage, flag,
              std::string("a model of the family ") + FamilyOf(body.config()).model_type() +
                  " has keys and values, and no state",
              "", kKeepsContexts);
}

void RequireKeysAndValues(const Body& body, const std::string& flag) {
  if (!body.carries_state()) return;
  throw Error(ErrorCode::kUsage, flag,
              std::string("a model of the family ") + FamilyOf(body.config()).model_type() +
                  " has a state, and no keys and values",
              "", kKeepsStates);
}

}  // namespace trainwright
