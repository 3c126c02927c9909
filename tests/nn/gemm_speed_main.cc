// The rates of the GEMMs of a layer, forward and backward, by our kernels, LibTorch's own (MKL for fp32,
// oneDNN for bf16) and oneDNN's matmul, with operands that are in no cache: what a step of training could be
// at most. scripts/compare/step_parts.sh compares a step's profile with it.
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mkldnn_linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/base/units.h"
#include "lib/cli/tool.h"
#include "lib/device/determinism.h"
#include "lib/device/process_setup.h"
#include "lib/machine/repeated_rate.h"
#include "lib/nn/linear/gemm_kernels.h"
#include "lib/nn/linear/matmul.h"
#include "lib/nn/precision.h"
#include "lib/report/table.h"

namespace trainwright {
namespace {

struct Options {
  Precision precision = Precision::kFp32;
  std::vector<std::string> layers;
  int threads = 1;
  int rounds = 5;
  int64_t cold_bytes = int64_t{256} << 20;
};

/// y [tokens, out] = x [tokens, in] w [out, in]^T, and its gradients.
struct Layer {
  int64_t tokens = 0, in = 0, out = 0;
};

struct Row {
  Layer layer;
  std::string pass, kernels;
  double flops_per_s = 0;  ///< median of the rounds
};

/// The operands of one GEMM, of which there are so many that none is in a cache when its turn comes again.
struct Operands {
  at::Tensor a, b, out;
};

class GemmSpeed {
 public:
  explicit GemmSpeed(const Options& options) : options_(options) {}

  const std::vector<Row>& Run() {
    for (const std::string& text : options_.layers) {
      const Layer layer = ParseLayer(text);
      Measure(layer, "forward");
      Measure(layer, "input gradient");
      Measure(layer, "weight gradient");
    }
    return rows_;
  }

 private:
  using Contestant = std::pair<std::string, std::function<void(Operands*)>>;

  static Layer ParseLayer(const std::string& text) {
    Layer layer;
    if (std::sscanf(text.c_str(), "%ldx%ldx%ld", &layer.tokens, &layer.in, &layer.out) != 3 ||
        std::min({layer.tokens, layer.in, layer.out}) < 1) {
      throw Error(ErrorCode::kUsage, "--layer", "'" + text + "' is not TOKENSxINxOUT");
    }
    return layer;
  }

  at::ScalarType type() const { return PrecisionDtype(options_.precision); }
  at::Tensor Random(int64_t rows, int64_t columns) const {
    return at::empty({rows, columns}, at::kFloat).uniform_(-1, 1).to(type());
  }

  /// Gradients of weights are summed in fp32, as training does.
  Operands Make(const Layer& layer, const std::string& pass) const {
    const at::Tensor x = Random(layer.tokens, layer.in), w = Random(layer.out, layer.in);
    if (pass == "forward") return {x, w.t(), at::zeros({layer.tokens, layer.out}, type())};
    const at::Tensor dy = Random(layer.tokens, layer.out);
    if (pass == "input gradient") return {dy, w, at::zeros({layer.tokens, layer.in}, type())};
    return {dy.t(), x, at::zeros({layer.out, layer.in}, at::kFloat)};
  }

  /// What oneDNN's matmul takes is made before it is timed, and its result is a new tensor.
  struct OneDnnOperands {
    at::Tensor x, w;
  };

  void Measure(const Layer& layer, const std::string& pass) {
    const bool sums = pass == "weight gradient";
    std::vector<Operands> sets = {Make(layer, pass)};
    const auto bytes_of = [](const Operands& set) {
      return static_cast<int64_t>(set.a.nbytes() + set.b.nbytes() + set.out.nbytes());
    };
    const int64_t count = 1 + options_.cold_bytes / bytes_of(sets[0]);
    while (static_cast<int64_t>(sets.size()) < count) sets.push_back(Make(layer, pass));
    std::vector<OneDnnOperands> onednn;
    const bool has_onednn = HasFastProducts(options_.precision, at::Device(at::kCPU));
    for (const Operands& set : sets) {
      if (has_onednn) onednn.push_back({set.a.contiguous().to_mkldnn(), set.b.t().contiguous().to_mkldnn()});
    }
    size_t turn = 0;
    std::vector<Contestant> contestants = {
        {"ours", [&](Operands* set) { Matmul(set->a, set->b, set->out, sums); }},
        {"torch",
         [&](Operands* set) {
           if (!sums) {
             at::mm_out(set->out, set->a, set->b);
           } else if (type() == at::kFloat) {
             at::addmm_out(set->out, set->out, set->a, set->b);
           } else {
             at::mm(set->a, set->b);  // has no sums in fp32: less work
           }
         }},
        {"onednn", [&](Operands*) { at::mkldnn_linear(onednn[turn].x, onednn[turn].w); }}};
    if (!has_onednn) contestants.pop_back();
    const double work = 2.0 * static_cast<double>(layer.tokens) * static_cast<double>(layer.in) *
                        static_cast<double>(layer.out);
    std::vector<std::vector<double>> rates(contestants.size());
    for (int round = -1; round < options_.rounds; ++round) {  // the first makes kernels
      for (size_t i = 0; i < contestants.size(); ++i) {
        const size_t who = round % 2 == 0 ? i : contestants.size() - 1 - i;
        int64_t done = 0;
        const auto start = std::chrono::steady_clock::now();
        for (turn = 0; turn < sets.size(); ++turn) {
          contestants[who].second(&sets[turn]);
          if (++done >= 3 && SecondsSince(start) > kLongestRoundS) break;
        }
        const double time_s = SecondsSince(start);
        if (round >= 0) rates[who].push_back(work * static_cast<double>(done) / time_s);
      }
    }
    for (size_t i = 0; i < contestants.size(); ++i) {
      std::sort(rates[i].begin(), rates[i].end());
      rows_.push_back({layer, pass, contestants[i].first, Quantile(rates[i], 0.5)});
    }
  }

  static constexpr double kLongestRoundS = 0.1;
  const Options options_;
  std::vector<Row> rows_;
};

std::string NameOf(const Layer& layer) {
  return std::to_string(layer.tokens) + "x" + std::to_string(layer.in) + "x" + std::to_string(layer.out);
}

std::string FormatRows(const std::vector<Row>& rows) {
  Table table({"layer", "pass", "kernels", "GFLOP/s"});
  for (const Row& row : rows) {
    table.AddRow({NameOf(row.layer), row.pass, row.kernels, FormatFixed(1e-9 * row.flops_per_s, 1)});
  }
  return table.ToString();
}

nlohmann::ordered_json EncodeRows(const std::vector<Row>& rows) {
  auto all = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    all.push_back({{"layer", NameOf(row.layer)},
                   {"pass", row.pass},
                   {"kernels", row.kernels},
                   {"flops_per_s", row.flops_per_s}});
  }
  return all;
}

void DefineSpeedOptions(CLI::App& app, Options* options) {
  AddChoice(app, "--precision", &options->precision, {{"fp32", Precision::kFp32}, {"bf16", Precision::kBf16}},
            "type of the operands");
  app.add_option("--layer", options->layers, "TOKENSxINxOUT of a layer; may be repeated")->required();
  app.add_option("--threads", options->threads, "compute threads")->check(CLI::PositiveNumber);
  app.add_option("--rounds", options->rounds, "rounds whose median counts")->check(CLI::PositiveNumber);
  app.add_option("--cold-bytes", options->cold_bytes, "of operands that take turns, beyond every cache");
}

}  // namespace
}  // namespace trainwright

int main(int argc, char** argv) {
  using namespace trainwright;
  PrepareDeterminism();
  Options options;
  const ToolInfo info = {.name = "gemm_speed",
                         .summary = "measure the GEMMs of layers by our kernels and by libraries",
                         .filter = false,
                         .stdout_is_data = false};
  return RunTool(
      argc, argv, info, [&](CLI::App& app) { DefineSpeedOptions(app, &options); },
      [&](ToolRun& run) {
        SetUpProcess({.threads = options.threads, .keep_room_for_libraries = true});  // as training
        GemmSpeed speed(options);
        const std::vector<Row>& rows = speed.Run();
        run.summary = {{"precision", PrecisionName(options.precision)},
                       {"threads", at::get_num_threads()},
                       {"kernels", CpuGemmsName(ChosenCpuGemms())},
                       {"gemms", EncodeRows(rows)}};
        std::fputs(FormatRows(rows).c_str(), stdout);
        return 0;
      });
}
