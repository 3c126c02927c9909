/// Carries out a parsed template.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/jinja/evaluator.h"
#include "lib/jinja/scope.h"
#include "lib/jinja/syntax_tree.h"
#include "lib/jinja/template.h"
#include "lib/jinja/traced_text.h"
#include "lib/jinja/value.h"

namespace trainwright::jinja {

class Interpreter final : private Evaluator {
 public:
  using Evaluator::Evaluator;

  /// \throws Problem
  Rendered Run();
  /// What a macro or the body of a call block writes for arguments.
  Value CallMacro(const Statement& macro, const std::shared_ptr<Scope>& outer, const Arguments& arguments);

 private:
  enum class Flow { kNormal, kBreak, kContinue };

  Flow RunBlock(const Block& block);
  Flow RunStatement(const Statement& statement);
  Flow RunInScope(const Block& block);
  Flow RunIf(const Statement& statement);
  Flow RunFor(const Statement& statement);
  Flow RunLoop(const Statement& statement, const Value& sequence, int64_t depth);
  Flow RunTurnLoop(const Statement& statement, const Value& sequence);
  Flow RunSetBlock(const Statement& statement);
  Flow RunWith(const Statement& statement);
  Flow RunFilterBlock(const Statement& statement);
  void RunCallBlock(const Statement& statement);
  Flow RunGeneration(const Statement& statement);
  Flow RunBuffered(const Block& block, TracedText* text);
  void Print(const Value& value);
  void Write(const TracedText& text);
  /// Before a text is added to what is written.
  /// \param cost as of TracedText
  void CountOutput(size_t bytes, size_t cost);
  void Assign(const Expression& target, const Value& value);
  Value MakeMacro(const Statement& statement);
  void SetMacroArguments(const Statement& macro, const Arguments& arguments);

  TracedText text_;
  TracedText* out_ = &text_;
  std::vector<Span> generations_;
  TurnPlaces turns_;
};

}  // namespace trainwright::jinja
