// millraced: settings -> parts -> run. The composition root: who is made of what, and in which order it goes.
#include <boost/asio/io_context.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "daemon/admit/ledger.h"
#include "daemon/cache/image_cache.h"
#include "daemon/cache/policy/use_table.h"
#include "daemon/door/passed_listeners.h"
#include "daemon/fetch/fetcher.h"
#include "daemon/memory/copier.h"
#include "daemon/memory/segment.h"
#include "daemon/memory/segment_maker.h"
#include "daemon/observe/counters.h"
#include "daemon/observe/log.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/process/command_line.h"
#include "daemon/process/lifetime.h"
#include "daemon/process/live_settings.h"
#include "daemon/process/operation.h"
#include "daemon/process/options.h"
#include "daemon/process/parts.h"
#include "daemon/process/process.h"
#include "daemon/serve/handoff/handoff_server.h"
#include "daemon/serve/rpc/grpc_server.h"
#include "daemon/serve/sessions/session_table.h"
#include "proto/base/handoff_path.h"

namespace millrace {
namespace {

// Everything that runs. It goes in the opposite order of its declarations, so that each part outlives those that use it.
class Daemon {
 public:
  // `line`: what the settings come from, and come from again.
  Daemon(Settings settings, CommandLine line)
      : settings_(std::move(settings)),
        line_(std::move(line)),
        limits_(settings_.limits),
        ledger_(budgets_of(settings_), &counters_),
        encoded_(settings_.encoded_in_flight) {}

  Result<void> assemble(const UnmappedIds& unmapped) {
    MILLRACE_TRY(const int highest_descriptor, prepare_descriptors(descriptor_needs(settings_)));
    limits_.highest_descriptor.put(highest_descriptor);
    MILLRACE_TRY(const InForce<Admins> admins, Admins::find(settings_.admins, own_ids(unmapped)));
    prepare_state_dir(settings_);
    cache_ = make_cache(settings_, counters_, uses_);
    MILLRACE_TRY(fetcher_,
                 Fetcher::create(fetcher_options(settings_, limits_, unmapped, encoded_, cache_.get()), counters_));
    MILLRACE_TRY(auto backends, make_backends(settings_, limits_.sample, cache_.get(), counters_));
    if (cache_) cache_->wait_for_disk(kDiskPatience);
    pipeline_ = std::make_unique<Pipeline>(control_, *fetcher_, std::move(backends), ledger_, counters_,
                                           pipeline_options(settings_, cache_.get(), uses_));
    maker_ = std::make_unique<SegmentMaker>(control_, promised_);
    copier_ = std::make_unique<Copier>(control_);
    sessions_ = std::make_unique<SessionTable>(
        control_, ledger_, Session::Services{.pipeline = *pipeline_, .lister = *fetcher_, .rings = *fetcher_}, *maker_,
        *copier_, counters_, settings_.limits);
    MILLRACE_TRY(PassedListeners passed, PassedListeners::of_this_process());
    MILLRACE_TRY(handoff_,
                 HandoffServer::create(control_, ledger_,
                                       {.path = handoff_path(settings_.socket), .admins = admins, .passed = &passed},
                                       counters_, *sessions_));
    sessions_->use(*handoff_);
    operation_ = std::make_unique<Operation>(control_, line_, unmapped, settings_, lifetime_);
    MILLRACE_TRY(grpc_, GrpcServer::create(grpc_options(settings_, limits_, settings_file(line_), *fetcher_,
                                                        cache_.get(), admins, passed),
                                           {.control = control_,
                                            .sessions = *sessions_,
                                            .pipeline = *pipeline_,
                                            .counters = counters_,
                                            .ledger = ledger_,
                                            .cache = cache_.get(),
                                            .orders = operation_.get()}));
    operation_->use({ledger_, encoded_, limits_, *fetcher_, *pipeline_, *sessions_, *grpc_});
    return passed.check_all_taken();
  }

  // Until it has been told to stop and has drained. REQUIRES: assemble() went well.
  void run() {
    std::printf("listening on %s\n", settings_.socket.c_str());
    std::fflush(stdout);
    lifetime_.run({*fetcher_, *pipeline_, *sessions_, *grpc_, *operation_, !line_.config.empty()});
  }

 private:
  Settings settings_;  // in force: what can change while it runs, `operation_` changes
  const CommandLine line_;
  SharedLimits limits_;
  Counters counters_;
  Ledger ledger_;
  PromisedMemory promised_;
  EncodedPool encoded_;                  // outlives the event loop's last handlers, which hold images
  std::unique_ptr<SegmentMaker> maker_;  // outlives every segment, and those outlive the event loop's last handlers
  boost::asio::io_context control_{1};
  std::unique_ptr<Copier> copier_;
  Lifetime lifetime_{control_, settings_};
  UseTable uses_;
  std::unique_ptr<ImageCache> cache_;  // nullptr: none
  std::unique_ptr<Fetcher> fetcher_;
  std::unique_ptr<Pipeline> pipeline_;
  std::unique_ptr<SessionTable> sessions_;
  std::unique_ptr<HandoffServer> handoff_;
  std::unique_ptr<Operation> operation_;
  std::unique_ptr<GrpcServer> grpc_;
};

int fail(const Error& error, int status) {
  print_failure("millraced", error.message);
  return status;
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  using namespace millrace;
  const CommandLine line = read_command_line(argc, argv);
  if (line.exit_status) return *line.exit_status;
  const UnmappedIds unmapped = unmapped_ids();
  Result<Settings> settings = settings_of(line, unmapped);
  if (!settings) return fail(settings.error(), kUsage);
  if (const std::optional<int> status = only_check(line, *settings)) return *status;
  if (const Result<void> there = look_for_roots(line); !there) return fail(there.error(), 1);
  prepare_process(*settings);
  Daemon daemon(*std::move(settings), line);
  if (const Result<void> made = daemon.assemble(unmapped); !made) return fail(made.error(), 1);
  daemon.run();
  return 0;
}
