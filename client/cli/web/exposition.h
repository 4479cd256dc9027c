// Figures as Prometheus reads them: its text format 0.0.4, and OpenMetrics 1.0. Pure, thread-bound(its owner).
//
//   Exposition page(Exposition::Form::kOpenMetrics);
//   page.family({.name = "millrace_samples_total", .kind = FamilyKind::kCounter, .help = "Images made"});
//   page.sample(640, {{"backend", "cpu"}});
//   std::string text = std::move(page).text();
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace::cli {

enum class FamilyKind : std::uint8_t { kCounter, kGauge, kHistogram, kInfo };

// Names are whole: of a counter with "_total", of an info with "_info". `unit`: shown by OpenMetrics, and the name ends
// with it (before "_total").
struct Family {
  std::string_view name;
  FamilyKind kind = FamilyKind::kGauge;
  std::string_view unit;
  std::string_view help;
};

class Exposition {
 public:
  enum class Form : std::uint8_t { kText, kOpenMetrics };
  struct Label {
    std::string_view name;
    std::string_view value_untrusted;
  };
  using Labels = std::vector<Label>;

  explicit Exposition(Form form) : form_(form) {}

  // What follows is of this family. Each family is begun once, and only where its name is one: see is_metric_name().
  void family(const Family& family);
  // One value of a counter, gauge or info.
  void sample(double value, const Labels& labels = {});
  // Of a histogram. Buckets hold those of the buckets before; one for infinity is added.
  struct Bucket {
    double most;
    std::uint64_t count;
  };
  void histogram(const std::vector<Bucket>& buckets, double sum, std::uint64_t count);

  // Once, last.
  std::string text() &&;

 private:
  void line(std::string_view name, std::string_view suffix, const Labels& labels, std::string_view value);

  const Form form_;
  std::string name_;  // of the family's samples
  std::string text_;
};

std::string_view content_type(Exposition::Form form);
// What an Accept header asks for: OpenMetrics 1.0 where it is there and preferred, else the text format.
Exposition::Form asked_form(std::string_view accept_untrusted);

// [a-zA-Z_][a-zA-Z0-9_]*: of metrics and labels alike, without colons.
bool is_metric_name(std::string_view text);

}  // namespace millrace::cli
