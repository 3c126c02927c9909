#include "lib/jinja/template.h"

#include "lib/base/error.h"
#include "lib/jinja/interpreter.h"
#include "lib/jinja/machine.h"
#include "lib/jinja/parser.h"
#include "lib/jinja/raised_error.h"

namespace trainwright::jinja {

struct Template::Impl {
  SyntaxTree tree;
};

Template::Template(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;
Template::~Template() = default;

Template Template::Parse(std::string_view source, const std::string& name) {
  auto impl = std::make_shared<Impl>();
  impl->tree = ParseTemplate(source, name);
  return Template(std::move(impl));
}

Rendered Template::Render(const nlohmann::ordered_json& variables, const RenderOptions& options) const {
  Machine machine(options);
  const std::string& name = impl_->tree.name;
  const auto place = [&] { return "line " + std::to_string(machine.line()); };
  if (!variables.is_object()) throw Error(ErrorCode::kBadInput, name, "its variables are no JSON object");
  try {
    Rendered rendered = Interpreter(impl_->tree, machine, variables).Run();
    rendered.steps = machine.steps();
    return rendered;
  } catch (const Raised& raised) {
    throw RaisedError(name, raised.what(), place());
  } catch (const VariableProblem& problem) {
    throw Error(ErrorCode::kBadInput, name, problem.what());
  } catch (const Problem& problem) {
    throw Error(ErrorCode::kBadInput, name, problem.what(), place());
  }
}

bool Template::has_generation() const {
  return impl_->tree.has_generation;
}
bool Template::uses_time() const {
  return impl_->tree.uses_time;
}

}  // namespace trainwright::jinja
