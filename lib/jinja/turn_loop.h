/// Finds the loop of a chat template that writes a conversation turn by turn.
///
/// Many templates write the messages by one loop in which each round sees its own message alone. What such
/// a template writes of a part of a conversation then follows from what it writes of the whole. Whether it
/// is so depends on what a rendering evaluates: marked here is each expression whose value may depend on how
/// many messages there are, on one that is not that of the round, on add_generation_prompt before the loop
/// ends, or on what earlier rounds left. A rendering that evaluates none of them and assigns to no namespace
/// in the loop shows the turns apart (Rendered::turns). What cannot be known from the text counts as such.
#pragma once

#include "lib/jinja/syntax_tree.h"

namespace trainwright::jinja {

/// Sets turn_loop, messages_id and first_turn_apart of the tree, and looks_around of its expressions; nothing
/// where there is no such loop.
void FindTurnLoop(SyntaxTree* tree);

}  // namespace trainwright::jinja
