// The figures that the project publishes: each a named measurement, printed as a line for people or as one JSON object
// a line. Medians of interleaved rounds in one run; a comparison carries its baseline, taken in the same rounds.
// Thread-bound(main).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace millrace::bench {

struct Baseline {
  std::string name;
  double value = 0;  // in the figure's unit
  double ratio = 0;  // figure / baseline; median of the rounds' ratios where rounds come in pairs
};

struct Figure {
  std::string name;
  double value = 0;
  std::string unit;
  std::uint32_t rounds = 0;
  std::optional<Baseline> baseline;
  std::string note;  // what the value is of, when the name does not say it
};

struct BenchOptions {
  std::string data;    // folder of photographs
  std::string filter;  // only figures whose name contains it
  bool json = false;
  bool quick = false;  // a smoke run: few rounds, figures that nobody should quote
};

class Report {
 public:
  explicit Report(bool json) : json_(json) {}

  void header(const BenchOptions& options) const;  // processor, cores, versions, date
  void add(const Figure& figure) const;
  void progress(const std::string& what) const;  // to stderr

 private:
  bool json_;
};

double median(std::vector<double> values);  // REQUIRES: not empty
std::string one_decimal(double value);      // 3.14159: "3.1"
// The figure with the median of its rounds' values, beside that of `others`, taken in the same rounds.
Figure compared(Figure figure, const std::vector<double>& values, const std::string& baseline,
                const std::vector<double>& others);
double percentile(std::vector<double> values, double percent);  // nearest rank. REQUIRES: not empty

// Each adds its figures, or ends the program with a message when the machine cannot run it.
void run_handover(const BenchOptions& options, const Report& report);
void run_latency(const BenchOptions& options, const Report& report);
void run_efficiency(const BenchOptions& options, const Report& report);
void run_efficiency_packed(const BenchOptions& options, const Report& report);
void run_scaling(const BenchOptions& options, const Report& report);
void run_costs(const BenchOptions& options, const Report& report);
void run_control(const BenchOptions& options, const Report& report);
void run_ceiling(const BenchOptions& options, const Report& report);
void run_memory(const BenchOptions& options, const Report& report);
void run_opening(const BenchOptions& options, const Report& report);
void run_scraping(const BenchOptions& options, const Report& report);
void run_tail(const BenchOptions& options, const Report& report);
void run_host_load(const BenchOptions& options, const Report& report);
void run_neighbours(const BenchOptions& options, const Report& report);
void run_why(const BenchOptions& options, const Report& report);
void run_observe(const BenchOptions& options, const Report& report);
void run_observe_tiny(const BenchOptions& options, const Report& report);
void run_cache(const BenchOptions& options, const Report& report);
void run_parts(const BenchOptions& options, const Report& report);

}  // namespace millrace::bench
