#include "lib/documents/turn_renderings.h"

#include <algorithm>
#include <utility>

namespace trainwright {

size_t CommonBegin(std::string_view a, std::string_view b) {
  const size_t most = std::min(a.size(), b.size());
  size_t common = 0;
  while (common < most && a[common] == b[common]) ++common;
  return common;
}

size_t CommonEnd(std::string_view a, std::string_view b) {
  const size_t most = std::min(a.size(), b.size());
  size_t common = 0;
  while (common < most && a[a.size() - 1 - common] == b[b.size() - 1 - common]) ++common;
  return common;
}

std::optional<TurnRenderings> TurnRenderings::Of(const jinja::Rendered& plain,
                                                 const jinja::Rendered& prompted,
                                                 const jinja::Rendered& changed) {
  const jinja::TurnPlaces& turns = plain.turns;
  if (turns.begins.size() < 2 || prompted.turns.begins != turns.begins ||
      prompted.turns.first != turns.first || changed.turns.first != turns.first ||
      changed.turns.begins.size() != turns.begins.size()) {
    return std::nullopt;
  }
  return TurnRenderings(plain, changed, prompted.text.substr(turns.begins.back()));
}

std::string_view TurnRenderings::Piece(const jinja::Rendered& rendered, size_t turn) {
  const uint64_t* begin = &rendered.turns.begins[turn - rendered.turns.first];
  return std::string_view(rendered.text).substr(begin[0], begin[1] - begin[0]);
}

std::optional<size_t> TurnRenderings::PromptEnd(size_t turn) const {
  if (!text().substr(Begin(turn)).starts_with(prompt_)) return std::nullopt;
  return Begin(turn) + prompt_.size();
}

std::optional<size_t> TurnRenderings::SharedEnd(size_t turn) const {
  const std::string_view own = Piece(plain_, turn), changed = Piece(changed_, turn);
  if (own == changed) return std::nullopt;
  const size_t behind = text().size() - Begin(turn + 1);
  const size_t common = CommonEnd(own, changed);
  if (common < std::min(own.size(), changed.size())) return behind + common;
  // One ends with all of the other: what is before them may go on being the same.
  const std::string_view before = text().substr(0, Begin(turn));
  return behind + CommonEnd(text().substr(0, Begin(turn + 1)), std::string(before).append(changed));
}

size_t TurnRenderings::SharedBegin(size_t turn) const {
  return Begin(turn + 1) + CommonBegin(text().substr(Begin(turn + 1)), Tail());
}

}  // namespace trainwright
