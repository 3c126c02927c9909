#include "lib/dist/shared_work.h"

#include <cstddef>

#include "lib/base/error.h"
#include "lib/device/memory_error.h"
#include "lib/dist/gather.h"

namespace trainwright {
namespace {

/// How the work ended on the rank whose end counts.
struct WorstEnd {
  WorkEnd end = WorkEnd::kDone;
  std::string who = {}, cause = {};
  std::string cause_of_first = {};  ///< rank 0's; empty: it did not fail
};

/// A call that all ranks make once they know that the work failed on one.
WorstEnd FindWorst(World* world, const std::exception_ptr& failure) {
  const std::vector<std::vector<int64_t>> ends = GatherWords(world, {static_cast<int64_t>(EndOf(failure))});
  const std::vector<std::string> causes = GatherBytes(world, CauseOf(failure));
  WorstEnd worst = {.who = "another rank", .cause_of_first = causes[0]};
  for (size_t rank = 0; rank < ends.size(); ++rank) {
    if (ends[rank][0] <= static_cast<int64_t>(worst.end)) continue;
    worst.end = static_cast<WorkEnd>(ends[rank][0]);
    worst.who = "rank " + std::to_string(rank);
    worst.cause = causes[rank];
  }
  return worst;
}

}  // namespace

WorkEnd EndOf(const std::exception_ptr& failure) {
  if (!failure) return WorkEnd::kDone;
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    switch (error.code()) {
      case ErrorCode::kInterrupted:
        return WorkEnd::kInterrupted;
      case ErrorCode::kReaderLeft:
        return WorkEnd::kReaderLeft;
      case ErrorCode::kTerminated:
        return WorkEnd::kTerminated;
      case ErrorCode::kNonFinite:
        return WorkEnd::kNotFinite;
      default:
        return WorkEnd::kFailed;
    }
  } catch (const std::exception& exception) {
    return AsMemoryError(exception, {}) ? WorkEnd::kOutOfMemory : WorkEnd::kFailed;
  } catch (...) {
    return WorkEnd::kFailed;
  }
}

std::string CauseOf(const std::exception_ptr& failure) {
  if (!failure) return "";
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& exception) {
    const std::string text = exception.what();
    return text.substr(0, text.find('\n'));
  } catch (...) {
    return "";
  }
}

void ThrowForAnother(WorkEnd end, const std::string& who, const std::string& cause) {
  const std::string why = cause.empty() ? "" : ": " + cause;
  switch (end) {
    case WorkEnd::kInterrupted:
      throw ErrorOfAnother(ErrorCode::kInterrupted, who, "got a signal");
    case WorkEnd::kReaderLeft:
      throw ErrorOfAnother(ErrorCode::kReaderLeft, who, "lost the reader of its output");
    case WorkEnd::kTerminated:
      throw ErrorOfAnother(ErrorCode::kTerminated, who, "got a signal");
    case WorkEnd::kOutOfMemory:
      throw RankOutOfMemory(who);
    case WorkEnd::kNotFinite:
      throw ErrorOfAnother(ErrorCode::kNonFinite, who, "got a number that is not finite" + why);
    default:
      throw ErrorOfAnother(ErrorCode::kIo, who, "failed" + why, "",
                           why.empty() ? "its own message says why" : "");
  }
}

void Rethrow(const World& world, const std::exception_ptr& failure, const std::string& cause_of_first) {
  if (world.is_writer() || CauseOf(failure) != cause_of_first) std::rethrow_exception(failure);
  try {
    std::rethrow_exception(failure);
  } catch (const ErrorOfAnother&) {
    throw;
  } catch (const Error& error) {
    throw CommonError(error);
  }
}

std::vector<int64_t> ShareEnd(World* world, const std::exception_ptr& failure,
                              const std::vector<int64_t>& answers) {
  const auto own = static_cast<int64_t>(EndOf(failure));
  std::vector<int64_t> questions = {own};
  questions.insert(questions.end(), answers.begin(), answers.end());
  const std::vector<int64_t> agreed = world->Agree(questions);
  const auto end = static_cast<WorkEnd>(agreed[0]);
  if (end != WorkEnd::kDone) {
    WorstEnd worst = {.end = end, .who = "another rank"};
    if (end == WorkEnd::kNotFinite || end == WorkEnd::kFailed) worst = FindWorst(world, failure);
    if (end == WorkEnd::kOutOfMemory) {  // which words are not worth: a number is enough
      worst.who = "rank " + std::to_string(world->Agree({own == agreed[0] ? world->rank() : -1})[0]);
    }
    if (agreed[0] > own) ThrowForAnother(end, worst.who, worst.cause);
    Rethrow(*world, failure, worst.cause_of_first);
  }
  return {agreed.begin() + 1, agreed.end()};
}

int64_t AsWriter(World* world, const std::function<int64_t()>& work) {
  int64_t result = 0;
  std::exception_ptr failure;
  try {
    if (world->is_writer()) result = work();
  } catch (...) {
    failure = std::current_exception();
  }
  return ShareEnd(world, failure, {result})[0];
}

void DoAlike(World* world, const std::function<void()>& work) {
  if (world->size() == 1) return work();
  std::exception_ptr failure;
  try {
    work();
  } catch (...) {
    failure = std::current_exception();
  }
  std::vector<int64_t> failed = {failure ? 1 : 0};
  world->Reduce(&failed);
  if (failed[0] == 0) return;
  const WorstEnd worst = FindWorst(world, failure);
  if (!failure) ThrowForAnother(worst.end, worst.who, worst.cause);
  Rethrow(*world, failure, worst.cause_of_first);
}

}  // namespace trainwright
