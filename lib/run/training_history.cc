#include "lib/run/training_history.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "lib/formats/json_text.h"

namespace trainwright {
namespace {

using nlohmann::json, nlohmann::ordered_json;

constexpr size_t kTrendSteps = 10;  // whose mean is compared with that of as many before

template <typename Value>
void Take(const json& object, const char* name, Value* value) {
  const auto field = object.find(name);
  if (field != object.end() && field->is_number()) *value = field->get<Value>();
}

void Take(const json& object, const char* name, std::optional<double>* value) {
  const auto field = object.find(name);
  if (field != object.end() && field->is_number()) *value = field->get<double>();
}

std::deque<double> Numbers(const json& object, const char* name) {
  std::deque<double> numbers;
  const auto field = object.find(name);
  if (field == object.end() || !field->is_array()) return numbers;
  for (const json& number : *field) {
    if (number.is_number()) numbers.push_back(number.get<double>());
  }
  return numbers;
}

std::string TextOf(const json& object, const char* name) {
  const auto field = object.find(name);
  return field != object.end() && field->is_string() ? field->get<std::string>() : "";
}

double Mean(std::deque<double>::const_iterator begin, std::deque<double>::const_iterator end) {
  return std::accumulate(begin, end, 0.0) / static_cast<double>(end - begin);
}

}  // namespace

void TrainingHistory::AddStep(int64_t step, double loss_nats, double lr) {
  if (!std::isfinite(loss_nats)) return;
  losses_.push_back(loss_nats);
  learning_rates_.push_back(lr);
  if (losses_.size() > kMostKept) losses_.pop_front();
  if (learning_rates_.size() > kMostKept) learning_rates_.pop_front();
  if (!best_loss_ || loss_nats < *best_loss_) {
    best_loss_ = loss_nats;
    best_step_ = step;
  }
  ++count_;
  const double difference = loss_nats - mean_;
  mean_ += difference / static_cast<double>(count_);
  squares_ += difference * (loss_nats - mean_);
}

void TrainingHistory::AddEvaluation(int64_t step, double loss_nats) {
  left_step_.reset();
  const bool is_again = step == evaluation_step_;  // a loss that is no number is looked for again on resume
  evaluation_step_ = step;
  evaluation_.reset();
  if (std::isfinite(loss_nats)) evaluation_ = loss_nats;
  if (evaluation_ && (!best_evaluation_ || loss_nats < *best_evaluation_)) {
    best_evaluation_ = loss_nats;
    best_evaluation_step_ = step;
    evaluations_since_best_ = 0;
  } else if (best_evaluation_ && !is_again && eval_every_ > 0 && step % eval_every_ == 0) {
    ++evaluations_since_best_;
  }
}

double TrainingHistory::loss_deviation_nats() const {
  return count_ > 1 ? std::sqrt(squares_ / static_cast<double>(count_)) : 0;
}

std::optional<double> TrainingHistory::last_loss_nats() const {
  return losses_.empty() ? std::nullopt : std::optional(losses_.back());
}

std::optional<double> TrainingHistory::evaluation_nats(int64_t step) const {
  return evaluation_step_ == step ? evaluation_ : std::nullopt;
}

bool TrainingHistory::improving() const {
  if (losses_.size() < 2 * kTrendSteps) return losses_.size() > 1 && losses_.back() < losses_.front();
  const auto middle = losses_.end() - kTrendSteps;
  return Mean(middle, losses_.end()) < Mean(middle - kTrendSteps, middle);
}

ordered_json TrainingHistory::Encode(int64_t step) const {
  const ordered_json mean =
      losses_.empty() ? ordered_json() : ordered_json(Mean(losses_.begin(), losses_.end()));
  const std::optional<double> evaluation = evaluation_nats(step);
  ordered_json state = {{"best_step", best_step_},
                        {"losses", count_},
                        {"mean", mean_},
                        {"squares", squares_},
                        {"evaluation", ValueOrNull(evaluation_)},
                        {"evaluation_step", evaluation_step_},
                        {"evaluations_since_best", evaluations_since_best_}};
  if (!evaluation_data_.empty()) state["evaluation_data"] = evaluation_data_;
  if (evaluation_is_left(step)) state["evaluation_left"] = true;
  return {{"current_loss", ValueOrNull(last_loss_nats())},
          {"best_loss", ValueOrNull(best_loss_)},
          {"loss_history", losses_},
          {"learning_rates", learning_rates_},
          {"validation_metrics",
           {{"current_avg_loss", mean},
            {"steps_since_best", best_loss_ ? step - best_step_ : 0},
            {"loss_trend", improving() ? "improving" : "stable"},
            {"eval_loss", ValueOrNull(evaluation)},
            {"best_eval_loss", ValueOrNull(best_evaluation_)},
            {"best_eval_step", best_evaluation_step_},
            {"is_best", evaluation.has_value() && best_evaluation_step_ == step}}},
          {"history_state", state}};
}

void TrainingHistory::Restore(const json& metadata) {
  *this = TrainingHistory(std::move(evaluation_data_), eval_every_);
  const json state = metadata.value("history_state", json::object());
  const json validation = metadata.value("validation_metrics", json::object());
  if (!state.is_object() || !validation.is_object()) return;
  losses_ = Numbers(metadata, "loss_history");
  learning_rates_ = Numbers(metadata, "learning_rates");
  Take(metadata, "best_loss", &best_loss_);
  Take(state, "best_step", &best_step_);
  Take(state, "losses", &count_);
  Take(state, "mean", &mean_);
  Take(state, "squares", &squares_);
  const std::string data = TextOf(state, "evaluation_data");
  if (evaluation_data_.empty()) evaluation_data_ = data;
  compares_anew_ = !data.empty() && data != evaluation_data_;
  if (compares_anew_) return;
  Take(validation, "best_eval_loss", &best_evaluation_);
  Take(validation, "best_eval_step", &best_evaluation_step_);
  Take(state, "evaluation", &evaluation_);
  Take(state, "evaluation_step", &evaluation_step_);
  // Older versions counted steps.
  evaluations_since_best_ = steps_since_best_evaluation() / std::max<int64_t>(1, eval_every_);
  Take(state, "evaluations_since_best", &evaluations_since_best_);
  int64_t step = 0;
  Take(metadata, "step", &step);
  if (state.value("evaluation_left", json()) == true) left_step_ = step;
}

void TrainingHistory::CompareFrom(int64_t step) {
  best_evaluation_ = evaluation_nats(step);
  best_evaluation_step_ = best_evaluation_ ? step : 0;
  evaluations_since_best_ = 0;
}

}  // namespace trainwright
