// millraced: settings -> parts -> run. The composition root: who is made of what, and in which order it goes.
#include <google/protobuf/stubs/logging.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "daemon/backend/backend_table.h"
#include "daemon/cache/check_in_child.h"
#include "daemon/cache/seek_cache.h"
#include "daemon/fetch/fetcher.h"
#include "daemon/fetch/root_folder.h"
#include "daemon/fetch/unmapped_ids.h"
#include "daemon/model/stopping.h"
#include "daemon/observe/counters.h"
#include "daemon/observe/log.h"
#include "daemon/observe/supervisor.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/serve/descriptor_plan.h"
#include "daemon/serve/grpc_server.h"
#include "daemon/serve/handoff_server.h"
#include "daemon/serve/segment_maker.h"
#include "daemon/serve/session_table.h"
#include "daemon/settings/settings.h"
#include "daemon/settings/state_dir.h"
#include "daemon/slots/segment.h"
#include "proto/base/backend_name.h"
#include "proto/base/handoff_path.h"
#include "proto/base/printable.h"

namespace millrace {
namespace {

constexpr int kUsage = 2;
constexpr std::chrono::milliseconds kDiskPatience{500};  // before the first client is listened to

struct CommandLine {
  std::string config;
  bool check_config = false;
  std::string socket;
  std::vector<std::string> roots;
  std::optional<std::uint32_t> lanes;
  std::string fake;
  std::string check_index;
};

// Where this user's own folders cannot be told from others', none is taken for it.
void distrust_own_folders(Settings& settings, const UnmappedIds& unmapped) {
  if (unmapped.user == ::geteuid() && settings.state_dir == automatic_state_dir()) settings.state_dir.clear();
}

Result<Settings> settings_of(const CommandLine& line, const UnmappedIds& unmapped) {
  Settings settings = default_settings();
  if (!line.config.empty()) {
    MILLRACE_TRY(settings, load_settings(line.config));
  }
  if (!line.socket.empty()) settings.socket = line.socket;
  for (const std::string& root : line.roots) settings.roots.push_back(root);
  if (line.lanes) settings.cpu_lanes = *line.lanes;
  if (!line.fake.empty()) settings.fake_backend = line.fake;
  distrust_own_folders(settings, unmapped);
  MILLRACE_TRY_VOID(check_settings(settings));
  return settings;
}

// The settings' roots may come later. Those of the command line must be there, so that a mistake in typing is seen at
// once.
Result<void> look_for_roots(const CommandLine& line) {
  for (const std::string& root : line.roots) MILLRACE_TRY_VOID(RootFolder::look_for(root));
  return {};
}

void print_settings(const Settings& settings) {
  std::printf("%s", to_toml(settings).c_str());
  for (const std::string& remark : settings.remarks) std::fprintf(stderr, "millraced: %s\n", remark.c_str());
  for (const std::string& root : settings.roots) {
    const Result<void> there = RootFolder::look_for(root);
    if (!there)
      std::fprintf(stderr, "millraced: %s: what lies beneath it is not served until it is there\n",
                   there.error().message.c_str());
  }
}

BackendOptions backend_options(const Settings& settings, SeekCache* cache) {
  return {.lanes = settings.cpu_lanes,
          .cores = settings.cores,
          .pin = settings.pin,
          .target = settings.target,
          .limits = settings.limits.sample,
          .cache = cache,
          .fake = settings.fake_backend};
}

Result<std::vector<Pipeline::NamedBackend>> make_backends(const Settings& settings, SeekCache* cache) {
  std::vector<Pipeline::NamedBackend> backends;
  for (const BackendRow& row : backend_table()) {
    const bool fake = row.name == "fake";
    const bool wanted = fake ? !settings.fake_backend.empty() : settings.cpu_backend;
    if (!wanted || !row.available()) continue;
    if (!is_backend_name(row.name))
      return Error{Code::kInternal, printable(row.name) + " is not a backend's name, which has " + kBackendNameRule};
    MILLRACE_TRY(std::unique_ptr<Backend> backend, row.create(backend_options(settings, cache)));
    backends.push_back({std::string(row.name), std::move(backend), fake});
  }
  if (backends.empty()) return Error{Code::kInvalid, "no backend is left: set backends.cpu = true"};
  return backends;
}

// Everything that runs, in the order in which it is made; it goes in the opposite one.
class Daemon {
 public:
  // `settings_file`: where they come from; empty: none.
  static Result<std::unique_ptr<Daemon>> create(Settings settings, std::string settings_file,
                                                const UnmappedIds& unmapped) {
    std::unique_ptr<Daemon> daemon(new Daemon(std::move(settings), std::move(settings_file)));
    MILLRACE_TRY_VOID(daemon->assemble(unmapped));
    return daemon;
  }

  // Until it has been told to stop and has drained.
  void run() {
    wait_for_signal();
    boost::asio::post(control_, [this] {
      supervisor_.ready(status());
      report();
    });
    control_.run();
  }

  const Settings& settings() const { return settings_; }

 private:
  Daemon(Settings settings, std::string settings_file)
      : settings_(std::move(settings)),
        settings_file_(std::move(settings_file)),
        budget_(settings_.segment_budget),
        encoded_(settings_.encoded_in_flight) {}

  // Where nothing can be kept, all works but from memory.
  void prepare_state_dir() {
    const std::string& folder = settings_.state_dir;
    if (folder.empty())
      return log_info(
          "nothing is kept from start to start: daemon.state_dir is empty, or there is no "
          "folder for it: set it, or $XDG_STATE_HOME");
    if (folder != automatic_state_dir()) return;
    const Result<void> made = make_state_dir(folder);
    if (!made) log_warning("nothing is kept from start to start: " + made.error().message);
  }

  Result<void> assemble(const UnmappedIds& unmapped) {
    MILLRACE_TRY(const int highest_descriptor, prepare_descriptors({.sessions = settings_.limits.session,
                                                                    .fetch_threads = settings_.fetch_threads,
                                                                    .roots = settings_.roots.size()}));
    prepare_state_dir();
    MILLRACE_TRY(fetcher_, Fetcher::create({.roots = settings_.roots,
                                            .unmapped = unmapped,
                                            .threads = settings_.fetch_threads,
                                            .limits = settings_.limits.sample,
                                            .pool = &encoded_},
                                           counters_));
    if (settings_.index_memory.count > 0) {
      cache_ = std::make_unique<SeekCache>(SeekCache::Options{.memory = settings_.index_memory,
                                                              .disk = settings_.index_disk,
                                                              .state_dir = settings_.state_dir,
                                                              .check = check_in_child},
                                           counters_);
      log_info("seek indexes are kept " + cache_->whereabouts());
    }
    MILLRACE_TRY(auto backends, make_backends(settings_, cache_.get()));
    if (cache_) cache_->wait_for_disk(kDiskPatience);
    pipeline_ = std::make_unique<Pipeline>(control_, *fetcher_, std::move(backends), counters_,
                                           Pipeline::Options{.limits = settings_.limits,
                                                             .encoded_in_flight = settings_.encoded_in_flight,
                                                             .decoding = settings_.decoding});
    maker_ = std::make_unique<SegmentMaker>(control_, budget_);
    sessions_ = std::make_unique<SessionTable>(control_, *pipeline_, *maker_, counters_, settings_.limits);
    MILLRACE_TRY(handoff_,
                 HandoffServer::create(
                     control_, HandoffServer::Options::of(handoff_path(settings_.socket), settings_.limits.session),
                     counters_, *sessions_));
    sessions_->use(*handoff_);
    MILLRACE_TRY(grpc_,
                 GrpcServer::create(
                     {.socket = settings_.socket,
                      .version = MILLRACE_VERSION,
                      .settings_file = settings_file_,
                      .roots = settings_.roots,
                      .missing_roots = [this] { return fetcher_->missing_roots(); },
                      .indexes_not_kept = cache_ ? cache_->hindrance() : "",
                      .limits = settings_.limits,
                      .highest_descriptor = highest_descriptor},
                     {.control = control_, .sessions = *sessions_, .pipeline = *pipeline_, .counters = counters_}));
    return {};
  }

  void wait_for_signal() {
    signals_.async_wait([this](boost::system::error_code error, int) {
      if (!error) drain();
    });
  }

  // For whoever looks at the service.
  std::string status() const {
    std::string text = "serving " + printable(settings_.socket);
    for (const std::string& root : fetcher_->missing_roots()) text += "; root not there: " + printable(root);
    return text;
  }

  // The service manager hears from the control thread itself, so it notices when that one hangs.
  void report() {
    if (!supervisor_.interval()) return;
    reports_.expires_after(*supervisor_.interval());
    reports_.async_wait([this](boost::system::error_code error) {
      if (error) return;
      supervisor_.alive(draining_ ? "" : status());
      report();
    });
  }

  // No new work; what is under way is finished, within daemon.drain_seconds. A second signal ends the wait.
  void drain() {
    log_info("stopping: finishing what is under way");
    draining_ = true;
    supervisor_.stopping("finishing what is under way");
    grpc_->stop_accepting();
    sessions_->refuse_opening(stopping());
    pipeline_->drain([this] { stop(); });
    patience_.expires_after(settings_.drain);
    patience_.async_wait([this](boost::system::error_code error) {
      if (!error) stop();
    });
    signals_.async_wait([this](boost::system::error_code error, int) {
      if (!error) stop();
    });
  }

  void stop() {
    if (stopping_) return;
    stopping_ = true;
    patience_.cancel();
    signals_.cancel();
    // Everything is answered; what is left is to flush it. A client that does not read now keeps its connection to the
    // deadline.
    const auto deadline = std::chrono::system_clock::now() + std::chrono::milliseconds(500);
    grpc_->shutdown(deadline, [this] { control_.stop(); });
  }

  const Settings settings_;
  const std::string settings_file_;
  Counters counters_;
  SegmentBudget budget_;
  EncodedPool encoded_;                  // outlives the event loop's last handlers, which hold images
  std::unique_ptr<SegmentMaker> maker_;  // outlives every segment, and those outlive the event loop's last handlers
  boost::asio::io_context control_{1};
  boost::asio::signal_set signals_{control_, SIGTERM, SIGINT};
  boost::asio::steady_timer patience_{control_};
  const Supervisor supervisor_ = Supervisor::of_this_process();
  boost::asio::steady_timer reports_{control_};
  std::unique_ptr<SeekCache> cache_;  // nullptr: none
  std::unique_ptr<Fetcher> fetcher_;
  std::unique_ptr<Pipeline> pipeline_;
  std::unique_ptr<SessionTable> sessions_;
  std::unique_ptr<HandoffServer> handoff_;
  std::unique_ptr<GrpcServer> grpc_;
  bool draining_ = false, stopping_ = false;
};

// Blocks of 8 MiB and more are the kernel's again as soon as they are freed. By itself glibc raises that bound to 32
// MiB once such blocks were freed, and then every lane keeps what its largest pictures took. Smaller ones are reused:
// of the free memory at its end, an arena keeps up to 16 MiB, so that ordinary pictures ask the kernel for nothing.
void give_large_blocks_back() {
  ::mallopt(M_MMAP_THRESHOLD, 8 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 16 << 20);
}

// As other processes can find it; empty: none.
std::string absolute_path(const std::string& file) {
  return file.empty() ? "" : std::filesystem::absolute(file).string();
}

// What libprotobuf complains about (text that is not UTF-8), and how often, is up to clients, whose calls' status says
// it; but a check that ends the daemon says why.
void log_what_aborts(google::protobuf::LogLevel level, const char*, int, const std::string& text) {
  if (level == google::protobuf::LOGLEVEL_FATAL) log_error("libprotobuf: " + text);
}

int fail(const Error& error, int status) {
  std::fprintf(stderr, "millraced: %s\n", error.message.c_str());
  return status;
}

void add_options(CLI::App& app, CommandLine& line) {
  app.set_version_flag("--version", std::string("millraced ") + MILLRACE_VERSION);
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return "millraced: " + printable(error.what()) + "\nmillraced: `millraced --help` shows what there is\n";
  });
  app.add_option("--config", line.config, "Settings file (TOML); config/millrace.toml documents every key")
      ->check(CLI::ExistingFile);
  app.add_flag("--check-config", line.check_config, "Check the settings, print what they amount to, and end");
  app.add_option("--socket", line.socket,
                 "Unix socket to listen on, instead of daemon.socket; the hand-off socket lies beside it");
  app.add_option("--root", line.roots,
                 "Folder that is there and clients may read from, beside files.roots; may be repeated");
  app.add_option("--lanes", line.lanes, "CPU lanes, instead of lanes.cpu; 0: one a processor")
      ->check(CLI::Range(0, 4096).description(""));
  app.add_option("--fake", line.fake,
                 "Adds the fake backend with these options, for tests: instant=1, delay_us=100, ...");
  app.add_option(kCheckIndexOption, line.check_index, "Reads this database of seek indexes, and ends: 0, it is sound")
      ->group("");  // for millraced itself
  app.footer(
      "Examples:\n"
      "  millraced --config /etc/millrace/millrace.toml\n"
      "  millraced --config /etc/millrace/millrace.toml --check-config\n"
      "  millraced --socket /tmp/millrace.sock --root /data --lanes 4\n\n"
      "SIGTERM or SIGINT: no new work, what is under way is finished (daemon.drain_seconds at the most), exit 0. A "
      "second one ends at once.\n"
      "Exit status: 0 stopped as asked, 1 could not start, 2 wrong usage or settings.");
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  using namespace millrace;
  CommandLine line;
  CLI::App app{"millraced: the host's image preprocessing daemon"};
  add_options(app, line);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }

  const UnmappedIds unmapped = unmapped_ids();
  Result<Settings> settings = settings_of(line, unmapped);
  if (!settings) return fail(settings.error(), kUsage);
  if (!line.check_index.empty()) return check_database(line.check_index) ? 0 : 1;
  if (line.check_config) {
    print_settings(*settings);
    return 0;
  }
  if (const Result<void> there = look_for_roots(line); !there) return fail(there.error(), 1);
  give_large_blocks_back();
  start_log(settings->log_level);
  google::protobuf::SetLogHandler(log_what_aborts);
  ::signal(SIGPIPE, SIG_IGN);
  ::pthread_setname_np(::pthread_self(), "mr-control");
  for (const std::string& remark : settings->remarks) log_warning(remark);

  Result<std::unique_ptr<Daemon>> daemon = Daemon::create(*std::move(settings), absolute_path(line.config), unmapped);
  if (!daemon) return fail(daemon.error(), 1);
  std::printf("listening on %s\n", (*daemon)->settings().socket.c_str());
  std::fflush(stdout);
  (*daemon)->run();
  return 0;
}
