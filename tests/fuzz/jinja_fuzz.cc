#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "lib/jinja/template.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

constexpr char kConversation[] =
    R"({"messages": [{"role": "system", "content": " s "}, {"role": "user", "content": "ä<"},
    {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": {"a": [1, 2.5]}}}]},
    {"role": "tool", "content": [{"type": "text", "text": "t"}]}, {"role": "assistant", "content": "b\nc"}],
    "tools": [{"name": "f"}], "bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": true})";

}  // namespace

/// A template, and behind a NUL the JSON of its variables where the input has one.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainwright;
  const std::string_view input = AsText({data, size});
  const size_t end = std::min(input.find('\0'), input.size());
  const std::string_view json = end < input.size() ? input.substr(end + 1) : kConversation;
  const auto variables = nlohmann::ordered_json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!variables.is_object()) return 0;
  jinja::RenderOptions options;
  options.limits = {.steps = 20'000, .value_bytes = 1 << 20, .output_bytes = 1 << 20, .depth = 50};
  try {
    const jinja::Template parsed = jinja::Template::Parse(input.substr(0, end), "t");
    const jinja::Rendered once = parsed.Render(variables, options);
    TRAINWRIGHT_CHECK(parsed.Render(variables, options).text == once.text);
    TRAINWRIGHT_CHECK(once.generations.empty() || parsed.has_generation());
    uint64_t at = 0;
    for (const jinja::Span& span : once.generations) {
      TRAINWRIGHT_CHECK(at <= span.begin && span.begin <= span.end && span.end <= once.text.size());
      at = span.end;
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUsage && error.code() != ErrorCode::kBadInput) throw;
  }
  return 0;
}
