#include "lib/eval/sample_ends.h"

#include <algorithm>
#include <utility>

#include "lib/base/error.h"

namespace trainwright {
namespace {

/// More than a character: where a run of byte tokens is open, its text grows by one at a time.
constexpr size_t kCharacterBytes = 4;

bool IsSilent(const Tokenizer& tokenizer, uint32_t id) {
  const DecodedAs as = tokenizer.DecodedIdOf(id).as;
  return as == DecodedAs::kNothing || as == DecodedAs::kBreak;
}

void AddSequence(std::vector<uint32_t> sequence, SampleEnds* ends) {
  if (sequence.size() == 1) {
    ends->ids.push_back(sequence[0]);
  } else {
    ends->sequences.push_back(std::move(sequence));
  }
}

/// Special tokens are no part of a text, and so are looked for by their ids.
void AddStop(const Tokenizer& tokenizer, const std::string& stop, SampleEnds* ends) {
  if (stop.empty()) throw Error(ErrorCode::kUsage, "--stop", "must not be empty");
  ends->stops.push_back(stop);
  for (const SpecialToken& special : tokenizer.special_tokens()) {
    const bool is_in_stop = !special.text.empty() && stop.find(special.text) != std::string::npos;
    if (!is_in_stop || !IsSilent(tokenizer, special.id)) continue;
    std::vector<uint32_t> ids;
    if (stop == special.text) {
      ids = {special.id};
    } else {
      tokenizer.EncodeContinued(stop, &ids);
      if (std::find(ids.begin(), ids.end(), special.id) == ids.end()) continue;
    }
    return AddSequence(std::move(ids), ends);
  }
}

}  // namespace

std::vector<std::string> SampleEnds::texts() const {
  std::vector<std::string> all = stops;
  all.insert(all.end(), answer_ends.begin(), answer_ends.end());
  return all;
}

SampleEnds SampleEndsOf(const Tokenizer& tokenizer, std::vector<uint32_t> ids,
                        const std::vector<uint32_t>& answer_end, const std::vector<std::string>& stops) {
  SampleEnds ends;
  ends.ids = std::move(ids);
  if (!answer_end.empty()) AddSequence(answer_end, &ends);
  // Of an end with a special token the text is no more than what is beside it, such as a line feed.
  if (answer_end.size() > 1 && std::none_of(answer_end.begin(), answer_end.end(),
                                            [&](uint32_t id) { return IsSilent(tokenizer, id); })) {
    SampleText text(&tokenizer, answer_end);  // behind some text, so that no space is dropped
    for (const uint32_t id : answer_end) text.Add(id);
    if (std::string spelt = text.settled() + std::string(text.open()); !spelt.empty()) {
      ends.answer_ends.push_back(std::move(spelt));
    }
  }
  for (const std::string& stop : stops) AddStop(tokenizer, stop, &ends);
  std::sort(ends.ids.begin(), ends.ids.end());
  ends.ids.erase(std::unique(ends.ids.begin(), ends.ids.end()), ends.ids.end());
  return ends;
}

EndFinder::EndFinder(const Tokenizer* tokenizer, const SampleEnds* ends, std::span<const int64_t> prompt)
    : ends_(ends),
      texts_(ends->texts()),
      text_(tokenizer, std::vector<uint32_t>(prompt.begin(), prompt.end())) {
  for (const std::string& text : texts_) longest_ = std::max(longest_, text.size());
}

std::optional<SampleEnd> EndFinder::Find(const std::vector<uint32_t>& ids) {
  for (const std::vector<uint32_t>& sequence : ends_->sequences) {
    if (ids.size() >= sequence.size() && std::equal(sequence.rbegin(), sequence.rend(), ids.rbegin())) {
      return SampleEnd{.reason = FinishReason::kEos, .ids = ids.size() - sequence.size()};
    }
  }
  if (texts_.empty()) return std::nullopt;
  text_.Add(ids.back());
  const std::string& settled = text_.settled();
  const std::string_view open = text_.open();
  std::string tail;  // whatever of the text an end that was not there before may be in
  if (const size_t most = longest_ + kCharacterBytes; open.size() > most && searched_ == settled.size()) {
    tail = open.substr(open.size() - most);
  } else {
    tail = settled.substr(searched_ - std::min(searched_, longest_ - 1)).append(open);
  }
  searched_ = settled.size();
  const bool found = std::any_of(texts_.begin(), texts_.end(), [&](const std::string& text) {
    return tail.find(text) != std::string::npos;
  });
  if (!found) return std::nullopt;
  return SampleEnd{.reason = FinishReason::kStop, .ids = ids.size()};
}

void RemoveEnd(const Tokenizer& tokenizer, const SampleEnds& ends, std::span<const uint32_t> prompt,
               Generation* sample, std::string* text) {
  if (sample->finish != FinishReason::kStop) return;
  size_t stop = std::string::npos, answer_end = std::string::npos;
  for (const std::string& each : ends.stops) stop = std::min(stop, text->find(each));
  for (const std::string& each : ends.answer_ends) answer_end = std::min(answer_end, text->find(each));
  text->resize(std::min({stop, answer_end, text->size()}));
  if (answer_end >= stop) return;
  sample->finish = FinishReason::kEos;
  SampleText decoded(&tokenizer, prompt);
  for (const uint32_t id : sample->ids) decoded.Add(id);
  sample->ids.resize(decoded.IdsWithin(answer_end));
  if (!sample->log_probabilities.empty()) sample->log_probabilities.resize(sample->ids.size());
}

}  // namespace trainwright
