#include "lib/codec/ckpt_compress_job.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <thread>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/units.h"
#include "lib/base/version.h"
#include "lib/codec/checkpoint_folder.h"
#include "lib/codec/checkpoint_listing.h"
#include "lib/codec/compress_job.h"
#include "lib/codec/compressed_file.h"
#include "lib/codec/extract.h"
#include "lib/formats/json_text.h"
#include "lib/io/byte_sink.h"
#include "lib/io/byte_source.h"
#include "lib/io/output_link.h"
#include "lib/io/random_reader.h"
#include "lib/report/table.h"

namespace trainwright {
namespace {

constexpr int kDamaged = static_cast<int>(ErrorCode::kBadInput);

/// What all threads may take, and what each takes at most, of elements of 64 bits: blocks and their codes;
/// zstd's tables at its highest level; blocks of the base and the difference from it.
constexpr int kMostMib = 256, kThreadMib = 16, kMibOfMax = 7, kMibOfBase = 8;

void Print(const std::string& text) {
  StdoutSink().Write(AsBytes(text));
}

bool IsFolder(const std::string& path) {
  return path != "-" && std::filesystem::is_directory(path);
}

std::string TitleOf(const std::string& path) {
  return path == "-" ? "standard input" : path;
}

double RatioOf(const CompressReport& report) {
  return report.compressed_bytes == 0
             ? 1
             : static_cast<double>(report.source_bytes) / static_cast<double>(report.compressed_bytes);
}

std::string Describe(const CompressReport& report) {
  return std::to_string(report.tensors) + " tensors, " + FormatBytes(report.source_bytes) + " in " +
         FormatBytes(report.compressed_bytes) + ", ratio " + FormatFixed(RatioOf(report), 3);
}

nlohmann::ordered_json ToJson(const CompressReport& report) {
  return {{"files", report.files},
          {"tensors", report.tensors},
          {"source_bytes", report.source_bytes},
          {"compressed_bytes", report.compressed_bytes},
          {"ratio", RatioOf(report)},
          {"tensors_lost", report.tensors_lost}};
}

class Job {
 public:
  Job(const CkptCompressOptions& options, ProgressMode progress, nlohmann::ordered_json* summary)
      : options_(options), progress_mode_(progress), summary_(summary) {
    job_.level = options.fast ? CodecLevel::kFast : options.max ? CodecLevel::kMax : CodecLevel::kDefault;
    if (options.to == OutputForm::kSafetensors) job_.form = CompressedForm::kSafetensors;
    if (options.to == OutputForm::kStream) job_.form = CompressedForm::kStream;
    if (job_.form) job_.compressed_input = CompressedInput::kRewrite;
    const int processors = static_cast<int>(std::thread::hardware_concurrency());
    job_.threads = options.threads > 0 ? options.threads : DefaultCodecThreads(options, processors);
    job_.verify = !options.no_verify;
    job_.force = options.force;
    job_.keep_going = options.keep_going;
    job_.base = options.base;
    job_.writer = std::string("ckpt-compress ") + TRAINWRIGHT_VERSION;
    job_.inputs = options.inputs.empty() ? std::vector<std::string>{"-"} : options.inputs;
  }

  int Run() {
    Check();
    int status = 0;
    try {
      for (const std::string& input : job_.inputs) status = std::max(status, Handle(input));
    } catch (const Error&) {
      TellDamage();
      throw;
    }
    summary_->update(ToJson(total_));
    if (damage_) throw *damage_;
    return status;
  }

 private:
  int Handle(const std::string& input) {
    return options_.list                                           ? List(input)
           : options_.test                                         ? Test(input)
           : !options_.tensors.empty() || !options_.slices.empty() ? Extract(input)
                                                                   : Transform(input);
  }

  void Check() const {
    const auto refuse = [](const std::string& what, const std::string& why, const std::string& hint = "") {
      return Error(ErrorCode::kUsage, what, why, "", hint);
    };
    const bool parts = !options_.tensors.empty() || !options_.slices.empty();
    const bool inspects = options_.test || options_.list;
    if (parts && !options_.decompress) throw refuse("--tensor and --slice", "take parts out with -d");
    if (parts && options_.keep_going) throw refuse("--keep-going", "is about all tensors, not some");
    if (options_.to == OutputForm::kRaw && !parts) throw refuse("--to raw", "is for --tensor and --slice");
    if (options_.to == OutputForm::kStream && options_.decompress)
      throw refuse("--to stream", "is a compressed form, and -d decompresses",
                   "without -d it rewrites the input");
    if (options_.json && !inspects) {
      throw refuse("--json", "shapes the output of -l and -t, and none is given",
                   "the counts of a run are written as JSON with --summary FILE");
    }
    if (options_.keep_going && !options_.decompress && !options_.test)
      throw refuse("--keep-going", "is for -d and -t");
    if (inspects && !options_.output.empty())
      throw refuse("-o", "has no meaning with -l or -t, which write nothing");
    if (!options_.output.empty() && job_.inputs.size() > 1)
      throw refuse("-o", "names one output, and there are " + std::to_string(job_.inputs.size()) + " inputs");
    if (parts && job_.inputs.size() > 1 && options_.to != OutputForm::kRaw) {
      throw refuse(
          "--tensor and --slice",
          "make one safetensors file, and there are " + std::to_string(job_.inputs.size()) + " inputs",
          "name one input, or take the bytes alone with --to raw");
    }
    if (std::count(job_.inputs.begin(), job_.inputs.end(), "-") > 1)
      throw refuse("-", "standard input can be read once");
    if (job_.inputs[0] == "-" && isatty(STDIN_FILENO) == 1)
      throw refuse("standard input", "is a terminal", "name a file, or pipe one in");
  }

  /// The output for an input.
  /// \param beside the name beside the input, empty where its name gives none
  std::string OutputFor(const std::string& input, const std::string& beside) const {
    if (IsStandardOutput(options_.output) && IsFolder(input)) {
      throw Error(ErrorCode::kUsage, input, "is a folder, and standard output takes one file", "",
                  "name the folder of the result with -o");
    }
    if (!options_.output.empty()) return options_.output;
    if (input == "-") return "-";
    if (!beside.empty()) return beside;
    throw Error(ErrorCode::kUsage, input,
                options_.decompress ? "has no name that ckpt-compress gives" : "is not called *.safetensors",
                "", "name the output with -o");
  }

  /// What is read is not written, be it before its time or after.
  void RefuseToReplaceWhatIsRead(const std::string& output, const std::string& base) const {
    std::vector<std::string> read = {base};
    std::copy_if(job_.inputs.begin(), job_.inputs.end(), std::back_inserter(read),
                 [](const std::string& input) { return !IsFolder(input); });
    RefuseToReplaceInputs(output, read);
  }

  /// Of a base that is a folder, the file with the name of the input.
  CompressJobOptions OptionsForFile(const std::string& input) const {
    return input == "-" ? job_ : OptionsFor(input, FolderOf(input), job_);
  }

  int Transform(const std::string& input) {
    const auto start = std::chrono::steady_clock::now();
    const bool folder = IsFolder(input);
    uint64_t total_bytes = 0;
    std::error_code ignored;
    if (!folder && input != "-") total_bytes = std::filesystem::file_size(input, ignored);
    if (ignored || options_.decompress) total_bytes = 0;
    Progress progress(progress_mode_, options_.decompress ? "restore" : "compress", total_bytes, "bytes");
    CompressJobOptions job = folder ? job_ : OptionsForFile(input);
    if (!folder) job.progress = [&](uint64_t source_bytes) { progress.Update(source_bytes); };
    CompressReport report;
    std::string output;
    if (options_.decompress) {
      output = OutputFor(input, folder ? RestoredFolderName(input) : RestoredName(input));
      if (!folder) RefuseToReplaceWhatIsRead(output, job.base);
      report = folder ? RestoreFolder(input, output, job) : RestoreFile(input, output, job);
    } else if (folder) {
      output = OutputFor(input, CompressedFolderName(input));
      report = CompressFolder(input, output, job);
    } else {
      if (!IsReadOnce(input)) {  // before it is asked for a name
        BufferedReader reader(OpenSource(input));
        RequireSafetensors(&reader);
      }
      const bool rewrites =
          job.form && !IsReadOnce(input) && IsCompressedCheckpoint(*OpenRandomReader(input));
      const CompressedForm form = job.form.value_or(CompressedForm::kSafetensors);
      const std::string plain = rewrites ? RestoredName(input) : input;
      output = OutputFor(input, CompressedName(plain, form));
      if (!job_.base.empty() && job.base.empty()) {
        throw Error(ErrorCode::kUsage, job_.base, "holds no base for " + input, "",
                    "a base has the name of its file");
      }
      RefuseToReplaceWhatIsRead(output, job.base);
      report = CompressFile(input, output, job);
    }
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    for (const std::string& path : report.kept) LogInfo(path + ": is compressed already, copied as it is");
    const int status = TellLosses(report, output);
    if (report.files > 0) {
      LogInfo((IsStandardOutput(output) ? "" : output + ": ") + Describe(report) + ", " +
              FormatFixed(static_cast<double>(report.source_bytes) / 1e6 / elapsed.count(), 1) + " MB/s");
    }
    total_.Add(report);
    return status;
  }

  /// What a restored output lacks.
  int TellLosses(const CompressReport& report, const std::string& output) {
    const std::string title = IsStandardOutput(output) ? "standard output" : output;
    for (const DamagedBlock& damage : report.damage) LogError(damage.message);
    if (report.tensors_lost > 0) {
      LogWarning(title + " lacks " + std::to_string(report.tensors_lost) + " of " +
                 std::to_string(report.tensors) + " tensors, which are damaged");
    }
    for (const Error& lost : report.lost_files) TellLater(lost);
    if (!report.lost_files.empty() && report.files > 0) {
      LogWarning(title + " lacks " + std::to_string(report.lost_files.size()) + " of " +
                 std::to_string(report.lost_files.size() + report.files) +
                 " files, of which nothing could be restored");
    }
    return report.damage.empty() && report.lost_files.empty() ? 0 : kDamaged;
  }

  int Extract(const std::string& input) {
    if (IsFolder(input))
      throw Error(ErrorCode::kUsage, input, "is a folder", "", "name the file that holds the tensor");
    const std::unique_ptr<RandomReader> file = OpenInput(input);
    const CompressedCheckpoint checkpoint(file.get(), /*may_be_damaged=*/true);
    if (checkpoint.problem()) LogWarning(*checkpoint.problem());
    const std::string base_path = OptionsForFile(input).base;
    RefuseToReplaceInputs(options_.output, {input, base_path});
    const std::unique_ptr<BaseTensors> base = base_path.empty() ? nullptr : OpenBase(base_path);
    std::vector<TensorPart> parts;
    for (const std::string& name : options_.tensors) parts.push_back({name, {}, {}});
    for (const std::string& slice : options_.slices) parts.push_back(ParseSlice(slice));
    const std::unique_ptr<ByteSink> sink =
        OpenOutput(options_.output.empty() ? "-" : options_.output, input, false, options_.force);
    if (options_.to == OutputForm::kRaw) {
      ExtractRaw(checkpoint, parts, base.get(), sink.get());
    } else {
      ExtractSafetensors(checkpoint, parts, base.get(), {}, sink.get());
    }
    sink->Commit();
    total_.Add({.files = 1, .tensors = parts.size()});
    (*summary_)["bytes_read"] = file->bytes_read();
    return 0;
  }

  int List(const std::string& input) {
    return Inspect(input, [&](const std::string& path) { return ListFile(path); });
  }

  int ListFile(const std::string& path) {
    const std::unique_ptr<RandomReader> file = OpenInput(path);
    const CompressedCheckpoint checkpoint(file.get());
    const std::vector<TensorListing> tensors = ListTensors(checkpoint);
    const CompressReport report{.files = 1,
                                .tensors = tensors.size(),
                                .source_bytes = checkpoint.head().SourceBytes(),
                                .compressed_bytes = file->size_bytes()};
    total_.Add(report);
    const std::string form = checkpoint.form() == CompressedForm::kStream ? "stream" : "safetensors";
    if (options_.json) {
      nlohmann::ordered_json json = {{"file", path},
                                     {"form", form},
                                     {"level", NameOf(checkpoint.head().level)},
                                     {"writer", checkpoint.head().writer},
                                     {"source_bytes", report.source_bytes},
                                     {"source_xxh128", HexEncode(checkpoint.tail().source_hash)},
                                     {"base_xxh128", nullptr},
                                     {"compressed_bytes", report.compressed_bytes},
                                     {"ratio", RatioOf(report)},
                                     {"tensors", nlohmann::ordered_json::array()}};
      if (checkpoint.head().base_hash) json["base_xxh128"] = HexEncode(*checkpoint.head().base_hash);
      for (const TensorListing& tensor : tensors) json["tensors"].push_back(ToJson(tensor));
      Print(JsonLineOf(json));
      return 0;
    }
    Table table({"tensor", "dtype", "shape", "bytes", "compressed", "ratio", "method"});
    for (const TensorListing& tensor : tensors) {
      table.AddRow({tensor.name, tensor.dtype, nlohmann::json(tensor.shape).dump(),
                    std::to_string(tensor.size_bytes), std::to_string(tensor.compressed_bytes),
                    FormatFixed(tensor.ratio(), 3), tensor.Method()});
    }
    Print(TitleOf(path) + ": " + form + ", level " + NameOf(checkpoint.head().level) + ", " +
          Describe(report) +
          (checkpoint.head().base_hash ? ", base " + HexEncode(*checkpoint.head().base_hash) : "") + "\n" +
          table.ToString());
    return 0;
  }

  int Test(const std::string& input) {
    return Inspect(input, [&](const std::string& path) {
      return TestFile(path, IsFolder(input) ? OptionsFor(path, input, job_) : OptionsForFile(path));
    });
  }

  /// Looks at a file, or at each of a folder, and goes on where one is damaged.
  /// \param look returns a status
  int Inspect(const std::string& input, const std::function<int(const std::string& path)>& look) {
    int status = 0;
    for (const std::string& path : IsFolder(input) ? CompressedFilesIn(input) : std::vector{input}) {
      try {
        status = std::max(status, look(path));
      } catch (const Error& error) {
        const bool is_of_file = error.object() == TitleOf(path) ||  // and not of the base
                                error.object().starts_with(TitleOf(path) + ": ");
        if (error.code() != ErrorCode::kBadInput || !is_of_file) throw;
        PrintDamaged(path, error);
        TellLater(error);
        status = kDamaged;
      }
    }
    return status;
  }

  /// Of a file that is damaged where nothing behind the damage can be checked or listed, or not compressed.
  void PrintDamaged(const std::string& path, const Error& error) {
    if (!options_.json) {
      Print(TitleOf(path) + (error.problem() == kNotCompressed ? ": not compressed\n" : ": damaged\n"));
      return;
    }
    nlohmann::ordered_json json = {{"file", path}, {"sound", false}, {"content_checked", false}};
    json["damage"] = nlohmann::ordered_json::array();
    const std::string message = error.what();
    json["damage"].push_back({{"tensor", nullptr}, {"block", nullptr}, {"message", message}});
    Print(JsonLineOf(json));
  }

  /// The last is how the run ends.
  void TellLater(const Error& damage) {
    TellDamage();
    damage_ = damage;
  }

  /// Says what would otherwise go unsaid behind another error.
  void TellDamage() {
    if (!damage_) return;
    LogError(damage_->what());
    if (!damage_->hint().empty()) LogHint(damage_->hint());
    damage_.reset();
  }

  int TestFile(const std::string& path, const CompressJobOptions& job) {
    const CompressReport report = VerifyFile(path, job);
    total_.Add(report);
    for (const DamagedBlock& damage : report.damage) LogError(damage.message);
    const bool sound = report.damage.empty();
    if (options_.json) {
      nlohmann::ordered_json json = {
          {"file", path}, {"sound", sound}, {"content_checked", report.content_checked}};
      json.update(ToJson(report));
      json["damage"] = nlohmann::ordered_json::array();
      for (const DamagedBlock& damage : report.damage) {
        json["damage"].push_back(
            {{"tensor", damage.tensor ? nlohmann::ordered_json(*damage.tensor) : nullptr},
             {"block", damage.block ? nlohmann::ordered_json(*damage.block) : nullptr},
             {"message", damage.message}});
      }
      Print(JsonLineOf(json));
    } else {
      Print(TitleOf(path) + ": " + (sound ? "sound" : "damaged") + ", " + Describe(report) +
            (sound ? "" : ", " + std::to_string(report.tensors_lost) + " tensors damaged") + "\n");
    }
    if (!report.content_checked) {
      LogWarning(TitleOf(path) + " was checked as it is stored; what it decodes to needs its base");
      LogHint("give the base with --base");
    }
    return sound ? 0 : kDamaged;
  }

  const CkptCompressOptions& options_;
  ProgressMode progress_mode_;
  nlohmann::ordered_json* summary_;
  CompressJobOptions job_;
  CompressReport total_;
  std::optional<Error> damage_;  ///< the last that ended the look at a file, thrown when all have had theirs
};

}  // namespace

int DefaultCodecThreads(const CkptCompressOptions& options, int processors) {
  const int mib = kThreadMib + (options.max ? kMibOfMax : 0) + (options.base.empty() ? 0 : kMibOfBase);
  return std::clamp(processors, 1, kMostMib / mib);
}

int RunCkptCompress(const CkptCompressOptions& options, ProgressMode progress,
                    nlohmann::ordered_json* summary) {
  return Job(options, progress, summary).Run();
}

}  // namespace trainwright
