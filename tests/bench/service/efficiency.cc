// What the service costs: images a second through daemon and client with N lanes, against a plain loop of the same
// kernels in one process with N threads; and the processor time that both take, which others on the machine disturb
// less. Rounds alternate, so that a noisy minute meets both.
#include <unistd.h>

#include <string>

#include "tests/bench/engine/plain_loop.h"
#include "tests/bench/figures.h"
#include "tests/bench/service/cores.h"
#include "tests/bench/service/service.h"

namespace millrace::bench {
namespace {

constexpr std::uint32_t kEfficiencyCopies = 10;

struct Side {
  std::vector<double> rates;    // images a second
  std::vector<double> seconds;  // of processor time
};

class Comparison {
 public:
  Comparison(const BenchOptions& options, std::uint32_t lanes)
      : folder_(files_in(options.data), options.quick ? 1 : kEfficiencyCopies),
        files_(files_in(folder_.path())),
        lanes_(lanes),
        service_(folder_.path(), lanes) {
    service_.epoch(1000);
    plain_loop(files_, lanes, 1000);
  }

  void round(std::uint32_t number) {
    add(served_, [&] { return service_.epoch(number); });
    add(plain_, [&] { return plain_loop(files_, lanes_, number); });
  }

  void report(const Report& report, const std::string& suffix) const {
    report.add(compared({.name = "service.efficiency." + suffix, .unit = "images/s"}, served_.rates, "plain loop",
                        plain_.rates));
    std::vector<double> served, plain;
    for (const double seconds : served_.seconds) served.push_back(microseconds_an_image(seconds));
    for (const double seconds : plain_.seconds) plain.push_back(microseconds_an_image(seconds));
    report.add(compared({.name = "service.cpu." + suffix, .unit = "us/image"}, served, "plain loop", plain));
  }

 private:
  template <class Run>
  void add(Side& side, Run run) {
    const double before = processor_seconds(::getpid()) + processor_seconds(service_.daemon_pid());
    side.rates.push_back(run());
    side.seconds.push_back(processor_seconds(::getpid()) + processor_seconds(service_.daemon_pid()) - before);
  }

  double microseconds_an_image(double seconds) const { return seconds * 1e6 / static_cast<double>(files_.size()); }

  const RepeatedFolder folder_;
  const std::vector<std::string> files_;
  const std::uint32_t lanes_;
  Service service_;
  Side served_, plain_;
};

}  // namespace

void run_efficiency(const BenchOptions& options, const Report& report) {
  for (const std::uint32_t lanes : {1U, 2U}) {
    const std::string suffix = std::to_string(lanes);
    const std::string names = "service.efficiency." + suffix + " service.cpu." + suffix;
    if (names.find(options.filter) == std::string::npos) continue;
    const std::uint32_t rounds = options.quick ? 1 : 9;
    report.progress("service against a plain loop, " + suffix + " lanes, " + std::to_string(rounds) + " rounds");
    Comparison comparison(options, lanes);
    for (std::uint32_t round = 0; round < rounds; ++round) comparison.round(round);
    comparison.report(report, suffix);
  }
}

}  // namespace millrace::bench
