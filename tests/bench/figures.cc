#include "tests/bench/figures.h"

#include <google/protobuf/stubs/common.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>

namespace millrace::bench {
namespace {

std::string processor() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    const auto colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) out += c;
  }
  return out + "\"";
}

std::string number(double value) {
  std::ostringstream text;
  text.precision(6);
  text << value;
  return text.str();
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return text;
}

}  // namespace

std::string one_decimal(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", value);
  return text.data();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

Figure compared(Figure figure, const std::vector<double>& values, const std::string& baseline,
                const std::vector<double>& others) {
  std::vector<double> ratios;
  std::transform(values.begin(), values.end(), others.begin(), std::back_inserter(ratios), std::divides<>());
  figure.value = median(values);
  figure.rounds = static_cast<std::uint32_t>(values.size());
  figure.baseline = Baseline{baseline, median(others), median(ratios)};
  return figure;
}

double percentile(std::vector<double> values, double percent) {
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<std::size_t>(std::ceil(percent / 100 * static_cast<double>(values.size())));
  return values[std::clamp<std::size_t>(rank, 1, values.size()) - 1];
}

void Report::header(const BenchOptions& options) const {
  const long cores = ::sysconf(_SC_NPROCESSORS_ONLN);
  if (!json_) {
    std::printf("%s, %ld cores, gRPC %s, %s, %s%s\n\n", processor().c_str(), cores, grpc::Version().c_str(),
                today().c_str(), options.data.empty() ? "no photographs" : "photographs in ", options.data.c_str());
    return;
  }
  std::printf(
      "{\"processor\": %s, \"cores\": %ld, \"grpc\": %s, \"protobuf\": %d, \"compiler\": %s, \"millrace\": %s, "
      "\"date\": %s, \"quick\": %s}\n",
      quoted(processor()).c_str(), cores, quoted(grpc::Version()).c_str(), GOOGLE_PROTOBUF_VERSION,
      quoted(__VERSION__).c_str(), quoted(MILLRACE_VERSION).c_str(), quoted(today()).c_str(),
      options.quick ? "true" : "false");
}

void Report::add(const Figure& figure) const {
  if (json_) {
    std::printf("{\"name\": %s, \"value\": %s, \"unit\": %s, \"rounds\": %u", quoted(figure.name).c_str(),
                number(figure.value).c_str(), quoted(figure.unit).c_str(), figure.rounds);
    if (figure.baseline) {
      std::printf(", \"baseline\": {\"name\": %s, \"value\": %s}, \"ratio\": %s", quoted(figure.baseline->name).c_str(),
                  number(figure.baseline->value).c_str(), number(figure.baseline->ratio).c_str());
    }
    if (!figure.note.empty()) std::printf(", \"note\": %s", quoted(figure.note).c_str());
    std::printf("}\n");
  } else {
    std::printf("%-24s %12s %-10s", figure.name.c_str(), number(figure.value).c_str(), figure.unit.c_str());
    if (figure.baseline) {
      std::printf(" %.3f x %s (%s)", figure.baseline->ratio, figure.baseline->name.c_str(),
                  number(figure.baseline->value).c_str());
    }
    std::printf("  [%u rounds]%s%s\n", figure.rounds, figure.note.empty() ? "" : "  ", figure.note.c_str());
  }
  std::fflush(stdout);
}

void Report::progress(const std::string& what) const {
  std::fprintf(stderr, "millrace_bench: %s\n", what.c_str());
}

}  // namespace millrace::bench
