// What a scrape of `millrace web` takes beside 64 sessions under load, and what the process has in memory.
#include <atomic>
#include <fstream>
#include <thread>

#include "tests/bench/figures.h"
#include "tests/bench/rig.h"
#include "tests/system/web/web_server.h"

namespace millrace::bench {
namespace {

constexpr int kSessions = 64;
constexpr int kLoops = 4;  // programs that take batches, each of a part of the sessions in turn

double resident_mebibytes_of(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string word; status >> word;) {
    double kibibytes = 0;
    if (word == "VmRSS:" && status >> kibibytes) return kibibytes / 1024;
  }
  give_up("/proc does not show millrace web");
}

// Epochs in sessions first, first + step, ... until `enough`.
void take_batches(std::vector<Session>& sessions, int first, int step, const std::string& folder,
                  const std::atomic<bool>& enough) {
  std::vector<Dataset> datasets;
  for (std::size_t i = first; i < sessions.size(); i += step)
    datasets.push_back(must(sessions[i].open_dataset(folder), "opening the dataset"));
  for (std::uint64_t number = 0; !enough; ++number) {
    for (std::size_t i = first, place = 0; i < sessions.size() && !enough; i += step, ++place) {
      Epoch epoch = sessions[i].epoch(datasets[place], {.seed = 1, .epoch = number, .shuffle = true});
      for (const Batch& batch : epoch)
        if (batch.failure || enough) break;
    }
  }
}

}  // namespace

void run_scraping(const BenchOptions& options, const Report& report) {
  report.progress("scraping");
  const TinyFiles tiny(256);
  const TempFolder folder;
  write_file(folder / "millrace.toml", "[limits]\nsessions = 80\nsessions_per_user = 80\n");
  Rig rig = Rig::start(tiny.path(), 2, {"--config", folder / "millrace.toml"});
  std::vector<Session> sessions;
  for (int i = 0; i < kSessions; ++i)
    sessions.push_back(
        must(rig.client.open_session(
                 {.name = "job " + std::to_string(i), .slots = 2, .batch = 16, .recipe = Recipe::train(64)}),
             "opening a session"));
  const WebServer web(rig.daemon.socket());
  std::atomic<bool> enough{false};
  std::vector<std::thread> loops;
  for (int i = 0; i < kLoops; ++i)
    loops.emplace_back([&, i] { take_batches(sessions, i, kLoops, tiny.path(), enough); });
  const int rounds = options.quick ? 20 : 400;
  std::vector<double> milliseconds;
  std::size_t bytes = 0;
  for (int i = 0; i < rounds; ++i) {
    // Beyond the moment for which an answer of the daemon is shared: each scrape asks it.
    std::this_thread::sleep_for(std::chrono::milliseconds(260));
    const auto begin = std::chrono::steady_clock::now();
    const HttpReply reply = web.get("/metrics");
    milliseconds.push_back(seconds_since(begin) * 1e3);
    if (reply.status != 200 || reply.body.find("\nmillrace_up 1\n") == std::string::npos) give_up("a scrape failed");
    bytes = reply.body.size();
  }
  const double resident = resident_mebibytes_of(web.process().pid());
  enough = true;
  for (std::thread& loop : loops) loop.join();
  std::sort(milliseconds.begin(), milliseconds.end());
  const auto quantile = [&](double part) {
    return milliseconds[static_cast<std::size_t>(part * static_cast<double>(milliseconds.size() - 1))];
  };
  const std::string what = std::to_string(bytes / 1024) + " KiB of 64 sessions under load";
  report.add({.name = "scrape.p50_ms", .value = quantile(0.5), .unit = "ms", .rounds = 1, .note = what});
  report.add({.name = "scrape.p99_ms", .value = quantile(0.99), .unit = "ms", .rounds = 1, .note = "at most 20"});
  report.add({.name = "scrape.web_mib", .value = resident, .unit = "MiB", .rounds = 1, .note = "at most 25"});
}

}  // namespace millrace::bench
