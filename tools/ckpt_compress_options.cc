#include "tools/ckpt_compress_options.h"

#include <CLI/CLI.hpp>

namespace trainwright {

const ToolInfo& CkptCompressInfo() {
  static const ToolInfo info = {
      .name = "ckpt-compress",
      .summary = "compress safetensors checkpoints without loss",
      .description =
          "Compresses safetensors files, or whole checkpoint folders, so that the same bytes come back: "
          "weights "
          "of 16-bit floats by about a third, optimizer state by more. Each block is decoded again and "
          "compared "
          "before anything is put in place.\n"
          "\n"
          "The result is a safetensors file itself, with one tensor of bytes for each tensor of the original "
          "and "
          "the original's header in its metadata, or a stream for pipes "
          "(trainwright-compressed-checkpoint(5)). "
          "Every block has a hash; damage is told by tensor, block and offset, and does not hide the rest.\n"
          "\n"
          "The bytes written depend on the input and the level, not on --threads, nor on whether a file or a "
          "pipe "
          "is read. An output file appears whole or not at all, and the input is never changed or removed.",
      .sections =
          {{"NAMES",
            "Without -o, the output of model.safetensors is model.twc.safetensors beside it, that of a "
            "folder "
            "DIR is DIR.twc, and -d takes these ends off again. A stream of model.safetensors is "
            "model.safetensors.twc. Standard input, and what --tensor and --slice take out, goes to standard "
            "output.\n"
            "\n"
            "In a folder every *.safetensors is compressed and every other file is copied; -d gives the same "
            "names and bytes again. With --base a folder, each file has the base of its name."},
           {"LEVELS",
            "--fast keeps to one table for a block. The default adds tables that follow the data and a "
            "predictor by rows and columns where it pays, as it does for the moments of Adam. --max tries "
            "more. "
            "All of them are decoded at about the same speed.\n"
            "\n"
            "--base FILE codes the difference from an earlier checkpoint where that is smaller: good for "
            "checkpoints a few steps apart. The same base is needed to decompress; its hash is stored, and "
            "another file is refused."},
           {"MEMORY",
            "Compressing holds up to three tensors at a time, and as many of the base. Decompressing holds a "
            "few "
            "blocks. A container that goes to a pipe, and standard input where parts of it are asked for, "
            "pass "
            "through a nameless file in TMPDIR."}},
      .examples =
          {{"ckpt-compress tiny-checkpoint/model.safetensors -o small.safetensors && "
            "ckpt-compress -l small.safetensors",
            "Compresses a file, and tells what became of each tensor."},
           {"ckpt-compress -d small.safetensors -o again.safetensors && "
            "cmp again.safetensors tiny-checkpoint/model.safetensors",
            "And back."},
           {"ckpt-compress --max tiny-checkpoint && ckpt-compress -t tiny-checkpoint.twc && "
            "ckpt-compress -d tiny-checkpoint.twc -o restored/ && diff -r tiny-checkpoint restored",
            "A whole folder: compressed, checked, restored."},
           {"ckpt-compress < again.safetensors | ckpt-compress -d > twice.safetensors",
            "Through a pipe, as over a network."},
           {"ckpt-compress -d --slice 'model.embed_tokens.weight[0:2]' --to raw small.safetensors | od -f | "
            "head -n 3",
            "The first numbers of a tensor, without reading the others."}},
      .see_also = {"train(1)", "zstd(1)", "trainwright-compressed-checkpoint(5)", "trainwright-codec(5)",
                   "trainwright-checkpoint(5)"},
  };
  return info;
}

void DefineCkptCompressOptions(CLI::App& app, CkptCompressOptions* options) {
  app.add_option("INPUT", options->inputs,
                 "Safetensors files or checkpoint folders; with -d, -t or -l compressed ones. - or none is "
                 "standard input.")
      ->type_name("PATH");
  app.add_option(
         "-o,--output", options->output,
         "Where the result goes: a file, a folder when the input is one, or - for standard output. See "
         "NAMES.")
      ->type_name("PATH");
  app.add_flag("-f,--force", options->force,
               "Replace what is there, and write binary data even to a terminal.");
  app.add_option("--threads", options->threads,
                 "Threads that code, 0 for one a CPU. The bytes written do not depend on it.")
      ->type_name("N")
      ->check(CLI::Range(0, 1024));

  const std::string compressing = "Compressing";
  CLI::Option* fast =
      app.add_flag("--fast", options->fast, "Faster and a little larger.")->group(compressing);
  app.add_flag("--max", options->max, "As small as can be, and slower.")->excludes(fast)->group(compressing);
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
         "Earlier checkpoint to code the difference from, plain or compressed. -d and -t need the same "
         "one.")
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
  app.add_option(
         "--tensor", options->tensors,
         "With -d: take out this tensor alone, without reading the others. May be given several times.")
      ->type_name("NAME")
      ->group(restoring);
  app.add_option(
         "--slice", options->slices,
         "With -d: take out rows FIRST to END of a tensor, END not included, as in NAME[0:16]. May be "
         "given several times.")
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
