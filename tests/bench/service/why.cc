// What `millrace why` promises: the images a second that it says a program would reach without a cause, beside those that
// it reaches once the cause is gone. Each in one daemon, with the same program before and after.
#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/bench/figures.h"
#include "tests/bench/service/service.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/host_faults.h"

namespace millrace::bench {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::uint32_t kWhyBatch = 16;  // images

// A loop without end over requests of one kind, and what is said of it.
class AskingLoop {
 public:
  AskingLoop(const Daemon& daemon, const std::vector<std::string>& paths, CacheUse cache)
      : client_(must(Client::connect(daemon.socket()), "connecting")),
        session_(must(
            client_.open_session(
                {.slots = 4, .batch = kWhyBatch, .recipe = Recipe::train(224), .cache = cache, .cache_at_once = true}),
            "opening a session")),
        paths_(paths) {}

  // Images a second; `compute`: what the loop takes for a batch.
  double rate(std::chrono::duration<double> span, std::chrono::milliseconds compute = 0ms) {
    while (asked_ < session_.slots()) submit();
    const auto begin = Clock::now();
    std::uint64_t images = 0;
    while (Clock::now() - begin < span) {
      images += must(session_.next(std::chrono::minutes(2)), "a batch").tensor.samples();
      --asked_;
      submit();
      if (compute.count() > 0) std::this_thread::sleep_for(compute);
    }
    return static_cast<double>(images) / seconds_since(begin);
  }

  // What it would reach without that cause; nothing where it is not named.
  std::optional<double> promised(const std::string& code) {
    const auto findings = must(client_.explain(session_.id()), "asking why").at(0).findings;
    const auto found = std::ranges::find(findings, code, &Finding::code);
    if (found != findings.end()) return found->images_per_second;
    std::string named;
    for (const Finding& finding : findings) named += ' ' + finding.code;
    std::fprintf(stderr, "millrace_bench: %s is not among what is named:%s\n", code.c_str(), named.c_str());
    return std::nullopt;
  }

 private:
  void submit() {
    BatchRequest request{};
    for (std::uint32_t i = 0; i < kWhyBatch; ++i)
      request.samples.push_back({.source = Path{paths_[next_++ % paths_.size()]}});
    must(session_.submit(std::move(request)), "a batch");
    ++asked_;
  }

  Client client_;
  Session session_;
  const std::vector<std::string> paths_;
  std::uint32_t asked_ = 0;
  std::size_t next_ = 0;
};

struct Kept {
  std::string promise;
  std::optional<double> promised;
  double reached = 0;
};

DaemonSpec spec_of(const std::string& root) {
  return {.roots = {root}, .lanes = 2, .cache = "memory = 0\n", .log_level = "warning", .for_all_users = true};
}

Kept of_disk(const std::string& root, const std::vector<std::string>& paths, std::chrono::seconds span) {
  const TempFolder shared;
  HostFaults faults(shared / "faults");
  DaemonSpec spec = spec_of(root);
  spec.env = {faults.env()};
  spec.program = bad_host_program();
  const Daemon daemon(std::move(spec));
  AskingLoop loop(daemon, paths, CacheUse::kOff);
  faults.reads_take(20, root);
  loop.rate(span);
  const std::optional<double> promised = loop.promised("slow_disk");
  faults.reads_take(0, "");
  loop.rate(1s);
  return {"disk", promised, loop.rate(span)};
}

Kept of_loop(const std::string& root, const std::vector<std::string>& paths, std::chrono::seconds span) {
  const Daemon daemon(spec_of(root));
  AskingLoop loop(daemon, paths, CacheUse::kOff);
  loop.rate(span, 100ms);
  return {"loop", loop.promised("loop_computes"), loop.rate(span)};
}

Kept of_share(const std::string& root, const std::vector<std::string>& paths, std::chrono::seconds span) {
  const Daemon daemon(spec_of(root));
  AskingLoop loop(daemon, paths, CacheUse::kOff);
  std::vector<std::string> wants{"sessions=2", "batch=16", "slots=4", "side=224"};
  wants.insert(wants.end(), paths.begin(), paths.end());
  std::optional<Process> other = daemon.client("work", wants);
  if (!other->wait_for("done")) give_up("the other program does nothing");
  loop.rate(span);
  const std::optional<double> promised = loop.promised("others_have_lanes");
  other.reset();
  loop.rate(1s);
  return {"share", promised, loop.rate(span)};
}

}  // namespace

void run_why(const BenchOptions& options, const Report& report) {
  const std::chrono::seconds span(options.quick ? 2 : 10);
  const std::vector<std::string> paths = files_in(options.data);
  for (const auto& promise : {of_disk, of_loop, of_share}) {
    const Kept kept = promise(options.data, paths, span);
    if (!kept.promised) continue;
    report.add({.name = "why.promise." + kept.promise,
                .value = *kept.promised / kept.reached,
                .unit = "",
                .rounds = 1,
                .note = one_decimal(*kept.promised) + " images/s promised, " + one_decimal(kept.reached) + " reached"});
  }
}

}  // namespace millrace::bench
