/// What a template writes of parts of a conversation, told from three renderings of the whole.
///
/// To find the answers, JinjaChat renders the conversation up to each answer, and with each answer's end
/// changed: work that grows with the square of the turns. Where a template shows the turns apart
/// (jinja::TurnPlaces), those renderings consist of pieces of three: the plain one, one with
/// add_generation_prompt, and one with the ends of all answers changed. Byte for byte what the renderings
/// would be, in time linear in the text.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "lib/jinja/template.h"

namespace trainwright {

/// The bytes that both begin or end with.
size_t CommonBegin(std::string_view a, std::string_view b);
size_t CommonEnd(std::string_view a, std::string_view b);

class TurnRenderings {
 public:
  /// \param prompted the whole with add_generation_prompt, `changed` with the ends of answers changed: all
  /// those from message plain.turns.first on
  /// \returns nullopt where not all of them show the turns apart
  static std::optional<TurnRenderings> Of(const jinja::Rendered& plain, const jinja::Rendered& prompted,
                                          const jinja::Rendered& changed);

  bool Has(size_t turn) const { return turn >= plain_.turns.first && turn < end_turn(); }

  /// Where the prompt for this turn ends in the text, or nullopt where the text does not begin with it.
  std::optional<size_t> PromptEnd(size_t turn) const;
  /// The bytes at the end that the text shares with it when the end of this turn alone is changed; nullopt
  /// where they are the same.
  std::optional<size_t> SharedEnd(size_t turn) const;
  /// The bytes at the beginning that the text shares with the conversation that ends with this turn.
  size_t SharedBegin(size_t turn) const;

 private:
  TurnRenderings(const jinja::Rendered& plain, const jinja::Rendered& changed, std::string prompt)
      : plain_(plain), changed_(changed), prompt_(std::move(prompt)) {}

  size_t end_turn() const { return plain_.turns.first + plain_.turns.begins.size() - 1; }
  size_t Begin(size_t turn) const { return plain_.turns.begins[turn - plain_.turns.first]; }
  std::string_view text() const { return plain_.text; }
  /// What follows the last turn.
  std::string_view Tail() const { return text().substr(plain_.turns.begins.back()); }
  static std::string_view Piece(const jinja::Rendered& rendered, size_t turn);

  jinja::Rendered plain_, changed_;
  std::string prompt_;  // what a prompt has after its turns
};

}  // namespace trainwright
