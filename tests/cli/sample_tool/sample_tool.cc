#include "tests/cli/sample_tool/sample_tool.h"

namespace trainwright::test {

ToolInfo SampleInfo(bool filter) {
  return {.name = "sample",
          .summary = "print what the command line says",
          .text = {.description =
                       "Prints its options, one `name=value` a line.\n\nA second paragraph: --steps isn't "
                       "a well-known flag.",
                   .sections = {{"FILES", "  sample.yaml\n  .hidden\n\nA configuration."}},
                   .examples = {{"sample --steps 3 -t 'two words' one two", "Three steps."}}},
          .see_also = {"pack(1)", "trainwright-shard(5)"},
          .filter = filter,
          .stdout_is_data = filter,
          .build_features = "a feature",
          .may_be_empty = {"tag", "title"},
          .absent = {{"--stride", "steps have one size; see --steps"}},
          .outputs = {{"output", {}}}};
}

void DefineSampleOptions(CLI::App& app, SampleOptions* options) {
  app.add_option("FILE", options->inputs, "Input files.");
  app.add_option("-o,--output", options->output, "Where the lines go.")->type_name("FILE");
  app.add_option("-t,--title", options->title, "A title. Free text.");
  app.add_option("-n,--steps", options->steps, "How many steps.")
      ->check(CLI::Range(int64_t{1}, int64_t{1000}));
  app.add_option("--rate", options->rate, "A rate per second.")->check(CLI::PositiveNumber);
  app.add_option("--scale", options->scales, "A factor.");
  app.add_option("--tag", options->tags, "A word.");
  app.add_flag("-f,--force", options->force, "Insist.");
  app.add_option("--mode", options->mode, "How to work.")->check(CLI::IsMember({"fast", "exact"}));
  app.add_option("--fail", options->fail, "Fail in this way.")->group("Trouble");
  app.add_option("--megabytes", options->megabytes, "Write so many MiB of zeros in place of the lines.")
      ->group("Trouble");
}

}  // namespace trainwright::test
