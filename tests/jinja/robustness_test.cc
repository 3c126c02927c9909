// Templates that are cut, damaged or greedy: errors, never anything else.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/jinja/raised_error.h"
#include "lib/jinja/template.h"
#include "tests/support/paths.h"

namespace trainwright::jinja {
namespace {

using Json = nlohmann::ordered_json;

Json ReadGoldens() {
  std::ifstream file(std::string(TRAINWRIGHT_SOURCE_DIR) + "/tests/jinja/fixtures/render_goldens.json");
  return Json::parse(file);
}

// A small budget, so that a damaged template cannot take long.
RenderOptions SmallLimits() {
  RenderOptions options;
  options.limits = {20'000, 1 << 20, 1 << 18, 100};
  return options;
}

// The text, or the error's words.
std::string RenderedOrProblem(const std::string& source, const Json& variables,
                              const RenderOptions& options = {}) {
  try {
    return Template::Parse(source, "t").Render(variables, options).text;
  } catch (const Error& error) {
    EXPECT_TRUE(error.code() == ErrorCode::kUsage || error.code() == ErrorCode::kBadInput);
    return error.what();
  }
}

std::string ProblemOf(const std::string& source, const RenderOptions& options = {}) {
  try {
    return "rendered: " + Template::Parse(source, "t").Render(Json::object(), options).text.substr(0, 99);
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(RobustnessTest, ATemplateCutAnywhereRendersOrIsRefused) {
  const Json goldens = ReadGoldens();
  const Json& talk = goldens["talks"]["tools_used"];
  for (const auto& item : goldens["templates"].items()) {
    const std::string source = item.value();
    for (size_t size = 0; size <= source.size(); ++size) {
      RenderedOrProblem(source.substr(0, size), talk, SmallLimits());
    }
  }
  for (const Json& golden : goldens["cases"]) {
    if (!golden.contains("source")) continue;
    const std::string source = golden["source"];
    for (size_t size = 0; size <= source.size(); ++size) {
      RenderedOrProblem(source.substr(0, size), goldens["variables"], SmallLimits());
      RenderedOrProblem(source.substr(size), goldens["variables"], SmallLimits());
    }
  }
}

TEST(RobustnessTest, ADamagedTemplateRendersOrIsRefused) {
  const Json goldens = ReadGoldens();
  std::vector<std::string> sources;
  for (const auto& item : goldens["templates"].items()) sources.push_back(item.value());
  for (const Json& golden : goldens["cases"]) {
    if (golden.contains("source")) sources.push_back(golden["source"]);
  }
  std::mt19937 random(7);
  const auto below = [&](size_t size) { return std::uniform_int_distribution<size_t>(0, size - 1)(random); };
  for (int round = 0; round < 20'000; ++round) {
    std::string source = sources[below(sources.size())];
    for (size_t change = below(4) + 1; change > 0 && !source.empty(); --change) {
      const size_t at = below(source.size());
      switch (below(3)) {
        case 0:
          source[at] = static_cast<char>(below(256));
          break;
        case 1:
          source.erase(at, below(8) + 1);
          break;
        default:
          const std::string& other = sources[below(sources.size())];
          if (!other.empty()) source.insert(at, other.substr(below(other.size()), below(30)));
      }
    }
    RenderedOrProblem(source, goldens["variables"], SmallLimits());
  }
}

TEST(RobustnessTest, WhatIsNestedTooDeepIsRefused) {
  const std::string deep = std::string(100'000, '(');
  EXPECT_NE(ProblemOf("{{ " + deep).find("too deeply nested"), std::string::npos);
  for (const std::string part :
       {"[", "{1:", "not ", "-", "f(", "a[", "1 if ", "1+(", "a|default(", "f(a=", "f(*"}) {
    std::string source = "{{ ";
    for (int i = 0; i < 50'000; ++i) source += part;
    EXPECT_NE(ProblemOf(source + "1").find("too deeply nested"), std::string::npos) << part;
  }
  for (const std::string part :
       {".a", "[0]", "()", "|upper", "+1", " or 1", " == 1", " if 1", "~1", " is defined"}) {
    std::string source = "{{ a";
    for (int i = 0; i < 50'000; ++i) source += part;
    ProblemOf(source + " }}");
  }
  std::string blocks;
  for (int i = 0; i < 50'000; ++i) blocks += "{% if 1 %}";
  EXPECT_NE(ProblemOf(blocks).find("too deeply nested"), std::string::npos);
  EXPECT_NE(ProblemOf("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}").find("deeper than the limit of 200"),
            std::string::npos);
  EXPECT_NE(
      ProblemOf("{% set n = namespace(x=[]) %}{% for i in range(1000) %}{% set n.x = [n.x] %}{% endfor %}")
          .find("too deep"),
      std::string::npos);
  for (const char* doubled : {"[n.x, n.x]", "{'a': n.x, 'b': n.x}", "(n.x, n.x)"}) {  // 2^99 values to print
    EXPECT_NE(ProblemOf("{% set n = namespace(x=1) %}{% for i in range(99) %}{% set n.x = " +
                        std::string(doubled) + " %}{% endfor %}{{ n.x }}")
                  .find("holds too much"),
              std::string::npos);
  }
  Json json = Json::array();
  for (int i = 0; i < 1000; ++i) json = Json::array({std::move(json)});
  EXPECT_NE(RenderedOrProblem("{{ x }}", {{"x", json}}).find("too deep"), std::string::npos);
}

TEST(RobustnessTest, EveryLimitEndsTheRenderingWithItsName) {
  RenderOptions options;
  options.limits = {1000, 100'000, 1000, 50};
  EXPECT_EQ(ProblemOf("{% for i in range(900) %}\n{{ i }}{% endfor %}", options),
            "t: the rendering takes more than the limit of 1000 steps (line 2)");
  EXPECT_EQ(ProblemOf("{{ 'a' * 1000000000 }}", options),
            "t: the rendering makes more than the limit of 100000 bytes of values (line 1)");
  for (const char* greedy :
       {"{{ [1] * 1000000000 }}", "{{ 'a'.ljust(1000000000) }}", "{{ 'a'|center(1000000000) }}",
        "{{ '%1000000000d' % 1 }}", "{{ [1]|batch(1000000000, 1)|list }}", "{{ [1]|slice(1000000000)|list }}",
        "{{ 'a'|indent(1000000000, true) }}", "{{ '1'.zfill(1000000000) }}", "{{ range(100001) }}",
        "{{ range(0, 1000000000000) }}", "{{ ('a' * 9999).replace('', 'b' * 9999) }}",
        "{{ '{:1000000000}'.format('') }}", "{{ [1]|tojson(indent=1000000000) }}",
        "{{ (['a'] * 999)|join('b' * 9999) }}",
        "{% set x %}{% for i in range(99) %}{{ 'a' * 999 }}{% endfor %}{% endset %}"}) {
    EXPECT_TRUE(ProblemOf(greedy, options).starts_with("t: ")) << greedy << ProblemOf(greedy, options);
  }
  EXPECT_EQ(ProblemOf("{% for i in range(20) %}{{ 'a' * 100 }}{% endfor %}", options),
            "t: the text is longer than the limit of 1000 bytes (line 1)");
  EXPECT_EQ(ProblemOf("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", options),
            "t: nested deeper than the limit of 50 (line 1)");
}

TEST(RobustnessTest, WhatGoesThroughLongValuesCountsAsManySteps) {
  RenderOptions options;
  options.limits.steps = 300'000;
  const std::string values =
      "{% set t = 'é' * 100000 %}{% set u = 'é' * 99999 ~ 'e' ~ 'e' %}{% set l = range(20000)|list %}"
      "{% set m = range(20000)|list %}{% set d = {'a': 1} %}{% set n = 'é' * 50000 ~ 'e' %}"
      "{% set a = range(300)|map('string')|list %}";
  const auto looped = [&](const std::string& expression) {
    return values + "{% for i in range(1000) %}{% set x = " + expression + " %}{% endfor %}";
  };
  EXPECT_EQ(ProblemOf(looped("1"), options), "rendered: ");
  for (const char* expression : {"'x' in t",
                                 "n in t",
                                 "t.find('x')",
                                 "t.rfind(n)",
                                 "t.index('é', 99)",
                                 "t.count('x')",
                                 "t.rsplit(n, 1)",
                                 "t.endswith('x', 1)",
                                 "t.partition('x')",
                                 "t[1]",
                                 "t[-1]",
                                 "t[5:6]",
                                 "t[::50000]",
                                 "t|length",
                                 "t == u",
                                 "t < u",
                                 "t is eq(u)",
                                 "t is sameas(u)",
                                 "t.isalpha()",
                                 "t.isspace()",
                                 "t is upper",
                                 "t.isupper()",
                                 "t|int",
                                 "t|float",
                                 "t|wordcount",
                                 "t|escape|length",
                                 "l|last",
                                 "l|first",
                                 "l|max",
                                 "-1 in l",
                                 "l.count(-1)",
                                 "l == m",
                                 "l < m",
                                 "[l] is eq([m])",
                                 "l|unique|first",
                                 "l|sort|first",

                                 "d[t]",
                                 "d.get(t)",
                                 "t in d",
                                 "(l ~ '')|length",
                                 "l|tojson|length",
                                 "'%s' % [l]",
                                 "'{}'.format(l)|length",
                                 "a|map('replace', *l)|list"}) {
    const std::string problem = ProblemOf(looped(expression), options);
    EXPECT_TRUE(problem.find("limit of") != std::string::npos ||
                problem.find("replace takes") != std::string::npos)
        << expression << ": " << problem;
  }
}

TEST(RobustnessTest, ViewsAreComparedByTheirKeys) {
  EXPECT_EQ(ProblemOf("{% set a = {'x': [1], 'y': 2} %}{% set b = {'y': 2, 'x': [1]} %}"
                      "{% set c = {'y': 2, 'x': [2]} %}{% set d = {('x', 1): 0} %}"
                      "{{ [a.keys() == b.keys(), a.items() == b.items(), a.items() == c.items(), "
                      "a.keys() == c.keys(), d.keys() == {'x': 1}.items(), {'x': 1}.items() == d.keys(), "
                      "a.keys() == d.keys(), a.values() == a.values()] }}"),
            "rendered: [True, True, False, True, True, True, False, False]");
}

TEST(RobustnessTest, ARenderingAsksEverySomeThousandStepsWhetherToGoOn) {
  int polls = 0;
  RenderOptions options;
  options.poll = [&] { ++polls; };
  const Template loop = Template::Parse("{% for i in range(99999) %}{{ i }}{% endfor %}", "t");
  const uint64_t steps = loop.Render(Json::object(), options).steps;
  EXPECT_GT(steps, 99'999u);
  EXPECT_NEAR(static_cast<double>(polls), static_cast<double>(steps) / 4096, 4);
  options.poll = [] { throw Error(ErrorCode::kInterrupted, "", "stopped"); };
  try {
    loop.Render(Json::object(), options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInterrupted);
  }
}

TEST(RobustnessTest, PartsOfATextAreCountedOneByOne) {
  RenderOptions options;
  options.limits.value_bytes = 1'000'000;
  for (const char* greedy :
       {"(',' * 400000).split(',')", "(',' * 400000).rsplit(',')", "('a ' * 200000).split()",
        "('a ' * 200000).rsplit()", "('\\n' * 400000).splitlines()", "('a' * 400000)|list",
        "('a' * 400000)[::-1]"}) {
    EXPECT_EQ(ProblemOf("{{ " + std::string(greedy) + "|length }}", options),
              "t: the rendering makes more than the limit of 1000000 bytes of values (line 1)")
        << greedy;
    int polls = 0;
    RenderOptions polled;
    polled.poll = [&] { ++polls; };
    EXPECT_TRUE(ProblemOf("{{ " + std::string(greedy) + "|length }}", polled).starts_with("rendered: "));
    const bool splits = std::string_view(greedy).find("split") != std::string_view::npos;
    EXPECT_GT(polls, splits ? 40 : 0) << greedy;
  }
}

// What int() and float() of Python make of them.
TEST(RobustnessTest, NumbersMayBeWrittenInTheDigitsOfAnyScript) {
  EXPECT_EQ(ProblemOf("{{ ['٣'|int, ' -१२३ '|int, '１_０'|int, '٣.٥'|float, '²'|int, 'ff'|int(base=16), "
                      "'1__0'|int(7), '1_0.5'|float] }}"),
            "rendered: [3, -123, 10, 3.5, 0, 255, 7, 10.5]");
}

TEST(RobustnessTest, ErrorsTellTheTemplateAndTheLine) {
  EXPECT_EQ(ProblemOf("a\nb\n{{ x.y }}"), "t: 'x' is undefined (line 3)");
  EXPECT_EQ(ProblemOf("a\n{% if %}"), "t: expected an expression, found the end of the statement (line 2)");
  EXPECT_EQ(ProblemOf("{{ 1\n| nosuch }}"), "t: the filter 'nosuch' is not known or not supported (line 2)");
  EXPECT_EQ(ProblemOf("{% extends 'x' %}"),
            "t: the statement 'extends' is not known or not supported (line 1)");
  EXPECT_EQ(ProblemOf("\n{{ raise_exception('No: ' ~ 1) }}"), "t: No: 1 (line 2)");
  for (const char* name :
       {"import", "include", "extends", "block", "trans", "autoescape", "debug", "from", "do"}) {
    EXPECT_EQ(ProblemOf("{% " + std::string(name) + " x %}"),
              "t: the statement '" + std::string(name) + "' is not known or not supported (line 1)");
  }
}

TEST(RobustnessTest, FaultsOfVariablesHaveNoLineOfTheTemplate) {
  Json json = Json::array();
  for (int i = 0; i < 1000; ++i) json = Json::array({std::move(json)});
  EXPECT_EQ(RenderedOrProblem("\n{{ x }}", {{"x", json}}), "t: a variable is nested too deep");
  EXPECT_EQ(RenderedOrProblem("\n{{ x }}", {{"x", {uint64_t{1} << 63}}}),
            "t: a number of the variables does not fit 64 bits: not supported");
}

TEST(RobustnessTest, OneTemplateIsRenderedByManyThreads) {
  const Json goldens = ReadGoldens();
  const Template parsed = Template::Parse(goldens["templates"]["qwen3"].get<std::string>(), "t");
  const Json& talk = goldens["talks"]["tools_used"];
  const std::string expected = parsed.Render(talk).text;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) EXPECT_EQ(parsed.Render(talk).text, expected);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(RobustnessTest, CirclesOfObjectsAreReleased) {  // the leak sanitizer looks
  for (const char* circle :
       {"{% set n = namespace() %}{% set n.n = n %}", "{% macro m() %}{% endmacro %}{% set x = m %}",
        "{% for i in [1] %}{% macro m() %}{{ i }}{% endmacro %}{% endfor %}",
        "{% set n = namespace() %}{% for i in [1] %}{% set n.l = loop %}{{ loop.changed(loop) }}{% endfor %}",
        "{% set n = namespace() %}{% for i in [1] %}{% set n.c = loop.changed %}{% endfor %}{{ n.c(n.c) }}",
        "{% set n = namespace() %}{% set n.c = cycler(n) %}{{ undefined.x }}"}) {
    ProblemOf(circle);
  }
}

TEST(RobustnessTest, TellsWhatATemplateHas) {
  EXPECT_TRUE(Template::Parse("{% generation %}{% endgeneration %}", "t").has_generation());
  EXPECT_FALSE(Template::Parse("{# {% generation %} #}", "t").has_generation());
  EXPECT_TRUE(Template::Parse("{{ strftime_now('%Y') }}", "t").uses_time());
  EXPECT_FALSE(Template::Parse("strftime_now", "t").uses_time());
}

}  // namespace
}  // namespace trainwright::jinja
