// Which bytes of a rendered text come from data variables.
#include "lib/jinja/traced_text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/jinja/template.h"
#include "tests/support/paths.h"

namespace trainwright::jinja {
namespace {

using Json = nlohmann::ordered_json;

/// Data of Greek letters alone, so that every byte of a text tells where it comes from.
Json Variables() {
  return {{"x", "αβγ"}, {"list", {"α", "β", "γ"}}, {"dict", {{"δ", "ε"}, {"ζ", "η"}}}, {"own", "a b"}};
}

Rendered Render(const std::string& source) {
  RenderOptions options;
  options.data_variables = {"x", "list", "dict"};
  return Template::Parse(source, "t").Render(Variables(), options);
}

/// The text with its data in brackets.
std::string Shown(const std::string& text, const std::vector<Span>& data) {
  std::string shown;
  size_t at = 0;
  for (const Span& span : data) {
    shown += text.substr(at, span.begin - at) + "[" + text.substr(span.begin, span.end - span.begin) + "]";
    at = span.end;
  }
  return shown + text.substr(at);
}

/// The runs of bytes that no ASCII character is of.
std::vector<Span> GreekOf(const std::string& text) {
  std::vector<Span> greek;
  for (size_t at = 0; at < text.size(); ++at) {
    if (static_cast<unsigned char>(text[at]) < 0x80) continue;
    if (greek.empty() || greek.back().end != at) greek.push_back({at, at});
    greek.back().end = at + 1;
  }
  return greek;
}

TEST(RenderedDataTest, BytesThatAnOperationTakesOverAreDataWhereTheyWereBefore) {
  for (const char* source : {
           "a{{ x }}b{{ x }}c",
           "{{ 'a' + x + 'b' }}{{ own }}",
           "{{ 'a' ~ x ~ 1 ~ own }}",
           "{{ ('a' + x + 'b')[1:3] }}{{ ('a' + x + 'b')[:2] }}{{ ('a' + x)[0] }}{{ x[-1] }}",
           "{{ ('ab' + x + 'c')[::-1] }}{{ x | reverse }}",
           "{{ 'a' * 2 + ('b' + x) * 3 }}",
           "{{ (' a' + x + ' ').strip() }}{{ (' a' + x + ' ') | trim }}{{ (x + 'aa').rstrip('a') }}",
           "{{ ('a' + x + 'b').split('β') | join('-') }}{{ '-'.join(list) }}{{ list | join('a') }}",
           "{% for part in ('a ' + x + ' b').split() %}{{ part }},{% endfor %}",
           "{% for part in ('a\n' + x + 'b\nc').splitlines() %}{{ part }},{% endfor %}",
           "{% for part in ('a-' + x + '-b').rsplit('-', 1) %}{{ part }},{% endfor %}",
           "{% for part in ('a' + x + 'b').partition('β') %}{{ part }},{% endfor %}",
           "{{ ('a' + x).removeprefix('a') }}{{ (x + 'a').removesuffix('a') }}",
           "{{ ('a' + x + 'b') | replace('β', 'c') }}{{ 'abc'.replace('b', x) }}{{ (x + 'aa').replace('a', "
           "'b', 1) }}",
           "{{ 'a{}b{c}{{'.format(x, c=x + 'd') }}{{ 'a%sb%%%d' % (x, 3) }}{{ 'a%s' | format(x) }}",
           "{{ ('a' + x + '\nb') | indent(2) }}",
           "{% set y %}a{{ x }}b{% endset %}{{ y }}{% set y | trim %} a{{ x }} {% endset %}{{ y }}",
           "{% macro m(y) %}a{{ y }}b{% endmacro %}{{ m(x) }}{{ m(x) | trim }}",
           "{% macro m() %}a{{ caller() }}{% endmacro %}{% call m() %}{{ x }}b{% endcall %}",
           "{% filter trim %} a{{ x }} {% endfilter %}",
           "{% set n = namespace(y='a') %}{% for z in list %}{% set n.y = n.y + z + 'b' %}{% endfor %}{{ n.y "
           "}}",
           "{% for c in 'a' + x + 'b' %}{{ c }}{% endfor %}{{ (x + 'a') | list | join }}",
           "{% for key, value in dict.items() %}{{ key }}={{ value }};{% endfor %}{{ dict | first }}",
           "{% for y in list recursive %}{{ y }}{{ loop('ab') if loop.first and y == 'α' }}{% endfor %}",
           "{{ x | default('a') }}{{ x | string }}{{ nothing | default(x) }}{{ [x, 'a'] | last }}",
       }) {
    const Rendered rendered = Render(source);
    EXPECT_FALSE(rendered.data.empty()) << source;
    EXPECT_EQ(Shown(rendered.text, rendered.data), Shown(rendered.text, GreekOf(rendered.text))) << source;
  }
}

TEST(RenderedDataTest, WhatIsMadeOfAValueWithDataIsDataAsAWhole) {
  for (const char* source :
       {"{{ ('a' + x) | upper }}", "{{ ('a' + x).title() }}", "{{ {'a': x} | tojson }}",
        "{{ ['a', x] | tojson(ensure_ascii=true) }}", "{{ {'a': [x]} }}", "{{ list | string }}",
        "{{ {x: 1} | tojson }}", "{{ 'a%5sb'[1:4] % x }}", "{{ '{:>5}'.format(x) }}",
        "{{ '{!r}'.format(x) }}", "{{ ('a' + x) | center(9) }}", "{{ ('<' + x) | e }}",
        "{{ 'a'.ljust(5, x[0]) }}", "{{ ['a'] | map('replace', 'a', x) | map('upper') | join }}"}) {
    const Rendered rendered = Render(source);
    EXPECT_EQ(rendered.data, (std::vector<Span>{{0, rendered.text.size()}})) << source << rendered.text;
  }
}

TEST(RenderedDataTest, WhatDataDecideIsNotData) {
  const Rendered rendered =
      Render("{% if 'β' in x %}a{% endif %}{{ x | length }}{{ own | upper }}{{ [own] | tojson }}");
  EXPECT_EQ(rendered.text, "a3A B[\"a b\"]");
  EXPECT_TRUE(rendered.data.empty());
}

TEST(RenderedDataTest, TheRoleOfATurnIsTheTemplatesWhereItIsAWord) {
  const auto data_of = [](const char* role) {
    const Json turn = {{"role", role}, {"more", {{"role", "user"}}}};
    RenderOptions options;
    options.data_variables = {"messages"};
    const Rendered rendered = Template::Parse("<{{ messages[0].role }}>{{ messages[0].more.role }}", "t")
                                  .Render({{"messages", Json::array({turn})}}, options);
    return Shown(rendered.text, rendered.data);
  };
  EXPECT_EQ(data_of("tool_response-2.b"), "<tool_response-2.b>[user]");
  for (const std::string role : {"a b", "a>", "<|im_end|>", "ü"}) {
    EXPECT_EQ(data_of(role.c_str()), "<[" + role + "]>[user]");
  }
}

TEST(RenderedDataTest, NoTemplateSeesWhatIsData) {
  std::ifstream file(std::string(TRAINWRIGHT_SOURCE_DIR) + "/tests/jinja/fixtures/render_goldens.json");
  const Json goldens = Json::parse(file);
  const auto rendered_or_problem = [](const Template& parsed, const Json& variables, bool is_data) {
    RenderOptions options;
    for (const auto& item : variables.items()) {
      if (is_data) options.data_variables.push_back(item.key());
    }
    try {
      return parsed.Render(variables, options).text;
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  size_t compared = 0;
  for (const Json& golden : goldens["cases"]) {
    if (!golden.contains("text")) continue;
    const Json& variables =
        golden.contains("talk") ? goldens["talks"][golden["talk"].get<std::string>()] : goldens["variables"];
    const std::string source =
        golden.contains("source")
            ? golden["source"].get<std::string>()
            : goldens["templates"][golden["template"].get<std::string>()].get<std::string>();
    const Template parsed = Template::Parse(source, "golden");
    EXPECT_EQ(rendered_or_problem(parsed, variables, true), rendered_or_problem(parsed, variables, false))
        << golden;
    ++compared;
  }
  EXPECT_GT(compared, 1000u);
}

constexpr uint64_t kPieces = 200;

/// The least limit of values under which a template is rendered.
uint64_t LeastValueBytes(const std::string& source, bool is_data) {
  std::string words;
  for (uint64_t i = 0; i < kPieces; ++i) words += "a-";
  const Json variables = {{"words", words}, {"letter", "a"}, {"list", Json::array_t(kPieces, "a")}};
  RenderOptions options;
  if (is_data) options.data_variables = {"words", "letter", "list"};
  const Template parsed = Template::Parse(source, "t");
  uint64_t too_low = 0, enough = uint64_t{1} << 24;
  while (too_low + 1 < enough) {
    options.limits.value_bytes = (too_low + enough) / 2;
    try {
      parsed.Render(variables, options);
      enough = options.limits.value_bytes;
    } catch (const Error&) {
      too_low = options.limits.value_bytes;
    }
  }
  return enough;
}

TEST(RenderedDataTest, WhereDataAreCountsAsValuesWhereverItIsKept) {
  // How often the places of that many pieces are made or taken over on the way.
  const std::pair<const char*, uint64_t> made[] = {
      {"{% for i in range(200) %}{{ letter }}-{% endfor %}", 1},
      {"{% set x %}{% for i in range(200) %}{{ letter }}-{% endfor %}{% endset %}", 2},
      {"{% set x = list | join('-') %}", 3},
      {"{% set x = '-'.join(list) %}", 3},
      {"{% set x = words.replace('-', '+') %}", 1},
      {"{% set x = words | replace('-', '+') %}", 1},
      {"{% set x = words.split('-') %}", 1},
      {"{% set x = words.rsplit('-') %}", 1},
      {"{% set x = words.replace('-', '\n') | indent(1) %}", 3},
      {"{% for c in words %}{% endfor %}", 2}};
  for (const auto& [source, times] : made) {
    EXPECT_GE(LeastValueBytes(source, /*is_data=*/true),
              LeastValueBytes(source, /*is_data=*/false) + times * kPieces * sizeof(Span))
        << source;
  }
}

TEST(TracedTextTest, PartsOfManySpansAreThoseOfTheirBytes) {
  TracedText text;
  std::string marks;  // 'd' for each byte that is data
  for (int i = 0; i < 200; ++i) {
    const bool is_data = i % 3 != 1;
    text.Add(std::string(static_cast<size_t>(i % 4), 'x'), is_data);
    marks += std::string(static_cast<size_t>(i % 4), is_data ? 'd' : '.');
  }
  for (size_t begin = 0; begin <= text.size(); begin += 3) {
    for (size_t end = begin; end <= text.size(); end += 7) {
      TracedText part;
      part.AddPart(text, begin, end);
      std::string shown(part.size(), '.');
      for (const Span& span : part.data()) {
        for (uint64_t at = span.begin; at < span.end; ++at) shown[at] = 'd';
      }
      ASSERT_EQ(shown, marks.substr(begin, end - begin)) << begin << " to " << end;
    }
  }
}

}  // namespace
}  // namespace trainwright::jinja
