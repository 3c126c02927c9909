#include "tools/ckpt_compress_options.h"

#include <CLI/App.hpp>

#include "tools/tool_texts.h"

namespace trainwright {

const ToolInfo& CkptCompressInfo() {
  static const ToolInfo info = {
      .name = "ckpt-compress",
      .summary = "compress safetensors checkpoints without loss",
      .text = ParseToolText(kCkptCompressText),
      .see_also = {"train(1)", "zstd(1)", "trainwright-compressed-checkpoint(5)", "trainwright-codec(5)",
                   "trainwright-checkpoint(5)", "trainwright-glossary(7)"},
      .variables = {{"to", "ckpt-compress-to"}, {"slice", "ckpt-compress-slice"}},
      .outputs = {{"output", {}}},
  };
  return info;
}

void DefineCkptCompressOptions(CLI::App& app, CkptCompressOptions* options) {
  app.add_option("INPUT", options->inputs,
                 "Safetensors files or checkpoint folders; with -d, -t or -l compressed ones. - or none is "
                 "standard input.")
      ->type_name("PATH");
  app.add_option("-o,--output", options->output,
                 "Where the result goes: a file, a folder when the input is one, or - for standard output. "
                 "See NAMES.")
      ->type_name("PATH");
  app.add_flag("-f,--force", options->force,
               "Replace what is there, and write binary data even to a terminal.");
  app.add_option("--threads", options->threads,
                 "Threads that code, 0 for one a CPU as far as 256 MiB of memory have room for them; see "
                 "MEMORY. The bytes written do not depend on it.")
      ->type_name("N")
      ->check(CLI::Range(0, 1024));

  const std::string compressing = "Compressing";
  CLI::Option* fast =
      app.add_flag("--fast", options->fast, "Faster and a little larger.")->group(compressing);
  CLI::Option* max = app.add_flag("--max", options->max, "As small as can be, and slower.")
                         ->excludes(fast)
                         ->group(compressing);
  AddChoice(app, "--to", &options->to,
            {{"auto", OutputForm::kAuto},
             {"safetensors", OutputForm::kSafetensors},
             {"stream", OutputForm::kStream},
             {"raw", OutputForm::kRaw}},
            "Form of the output. auto makes files that are safetensors and streams for standard output. A "
            "compressed input is rewritten into the form that is named. raw is for --tensor and --slice.")
      ->type_name("FORM")
      ->group(compressing);
  app.add_option(
         "--base", options->base,
         "Earlier checkpoint to code the difference from, plain or compressed. -d and -t need the same one.")
      ->type_name("PATH")
      ->group(compressing);
  app.add_flag("--no-verify", options->no_verify, "Leave out the decoding and comparing of each block.")
      ->group(compressing);

  const std::string restoring = "Restoring and looking into";
  CLI::Option* decompress =
      app.add_flag("-d,--decompress", options->decompress, "Restore the original.")->group(restoring);
  CLI::Option* test = app.add_flag("-t,--test", options->test,
                                   "Check everything and write nothing. Exit status 3 and a message with the "
                                   "place if something is wrong.")
                          ->group(restoring);
  CLI::Option* list =
      app.add_flag("-l,--list", options->list, "Print type, shape, sizes, ratio and method of each tensor.")
          ->group(restoring);
  decompress->excludes(test)->excludes(list);
  test->excludes(list);
  for (CLI::Option* reads : {decompress, test, list}) reads->excludes(fast)->excludes(max);
  app.add_option(
         "--tensor", options->tensors,
         "With -d: extract this tensor alone, without reading the others. May be given several times.")
      ->type_name("NAME")
      ->group(restoring);
  app.add_option("--slice", options->slices,
                 "With -d: extract rows FIRST to END of a tensor, END not included, as in NAME[0:16]. May "
                 "be given several times.")
      ->type_name("NAME[FIRST:END]")
      ->group(restoring);
  app.add_flag(
         "--keep-going", options->keep_going,
         "Restore the tensors that are sound, or with -t name all damage. Exit status 3 if there is any.")
      ->group(restoring);
  app.add_flag("--json", options->json, "With -l or -t: print one JSON object for each file.")
      ->group(restoring);
}

}  // namespace trainwright
