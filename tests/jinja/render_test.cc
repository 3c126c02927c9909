// Templates rendered, against what transformers makes of them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "lib/base/error.h"
#include "lib/jinja/raised_error.h"
#include "lib/jinja/template.h"
#include "tests/support/paths.h"

namespace trainwright::jinja {
namespace {

using Json = nlohmann::ordered_json;

/// Those of scripts/compare/chat_templates.sh; null: the fixture.
const char* OtherGoldens() {
  return std::getenv("TRAINWRIGHT_JINJA_GOLDENS");
}

const Json& Goldens() {
  static const Json goldens = [] {
    const char* other = OtherGoldens();
    std::ifstream file(other != nullptr ? other
                                        : std::string(TRAINWRIGHT_SOURCE_DIR) +
                                              "/tests/jinja/fixtures/render_goldens.json");
    return Json::parse(file);
  }();
  return goldens;
}

RenderOptions AtTheTimeOfGoldens() {
  using namespace std::chrono;  // NOLINT
  RenderOptions options;
  options.now = sys_days(2026y / July / 9) + 13h + 5min + 8s;
  return options;
}

uint64_t PointsBefore(const std::string& text, uint64_t bytes) {
  uint64_t points = 0;
  for (uint64_t i = 0; i < bytes; ++i) points += (static_cast<unsigned char>(text[i]) & 0xc0) != 0x80 ? 1 : 0;
  return points;
}

// The outcome in the form of the goldens.
Json OutcomeOf(const std::string& source, const Json& variables, std::string* problem) {
  try {
    const Template parsed = Template::Parse(source, "golden");
    const Rendered rendered = parsed.Render(variables, AtTheTimeOfGoldens());
    Json outcome = {{"text", rendered.text}};
    for (const Span& span : rendered.generations) {
      outcome["spans"].push_back(
          {PointsBefore(rendered.text, span.begin), PointsBefore(rendered.text, span.end)});
    }
    EXPECT_EQ(rendered.generations.empty() || parsed.has_generation(), true);
    return outcome;
  } catch (const RaisedError& error) {
    *problem = error.what();
    return {{"error", "raise"}, {"message", error.message()}};
  } catch (const Error& error) {
    *problem = error.what();
    EXPECT_TRUE(error.code() == ErrorCode::kUsage || error.code() == ErrorCode::kBadInput) << error.what();
    EXPECT_EQ(error.object(), "golden");
    EXPECT_TRUE(error.place().starts_with("line ")) << error.what();
    return {{"error", error.code() == ErrorCode::kUsage ? "syntax" : "render"}};
  }
}

const Json& VariablesOf(const Json& golden) {
  return golden.contains("talk") ? Goldens()["talks"][golden["talk"].get<std::string>()]
                                 : Goldens()["variables"];
}

std::string SourceOf(const Json& golden) {
  if (golden.contains("source")) return golden["source"];
  return Goldens()["templates"][golden["template"].get<std::string>()];
}

TEST(RenderTest, EveryGoldenIsRenderedAsTransformersDoes) {
  size_t equal = 0, refused = 0;
  for (const Json& golden : Goldens()["cases"]) {
    Json expected = golden;
    for (const char* key : {"source", "template", "talk", "refused"}) expected.erase(key);
    std::string problem;
    const Json outcome = OutcomeOf(SourceOf(golden), VariablesOf(golden), &problem);
    if (golden.contains("refused")) {
      ++refused;
      EXPECT_TRUE(outcome.contains("error")) << golden << "\n" << outcome;
      continue;
    }
    // Whether Python or its compiler finds an error is no matter.
    if (expected.contains("error") && outcome.contains("error") && expected["error"] != "raise") {
      EXPECT_NE(outcome["error"], "raise") << golden;
      ++equal;
      continue;
    }
    EXPECT_EQ(outcome, expected) << golden << "\n" << problem;
    equal += outcome == expected ? 1 : 0;
  }
  if (OtherGoldens() != nullptr) {
    std::cout << "renderings: " << Goldens()["cases"].size() << ", as transformers makes them: " << equal
              << "\n";
    return;
  }
  RecordProperty("equal", static_cast<int>(equal));
  EXPECT_GT(equal, 1200U);
  EXPECT_LT(refused, 50U);
}

}  // namespace
}  // namespace trainwright::jinja
