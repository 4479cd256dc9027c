#include "daemon/process/daemon.h"

#include <cstdio>
#include <utility>

#include "daemon/door/passed_listeners.h"
#include "daemon/process/options.h"
#include "daemon/process/parts.h"
#include "proto/base/sockets/handoff_path.h"

namespace millrace {

Daemon::Daemon(Settings settings, CommandLine line)
    : settings_(std::move(settings)),
      line_(std::move(line)),
      limits_(settings_.limits),
      ledger_(budgets_of(settings_), &counters_),
      encoded_(settings_.encoded_in_flight) {}

Result<void> Daemon::assemble(const UnmappedIds& unmapped) {
  MILLRACE_TRY(const int highest_descriptor, prepare_descriptors(descriptor_needs(settings_)));
  highest_descriptor_.put(highest_descriptor);
  MILLRACE_TRY(const InForce<Admins> admins, Admins::find(settings_.admins, own_ids(unmapped)));
  prepare_state_dir(settings_);
  cache_ = make_cache(settings_, counters_, uses_);
  MILLRACE_TRY(fetcher_,
               Fetcher::create(fetcher_options(settings_, limits_, unmapped, encoded_, cache_.get()), counters_));
  MILLRACE_TRY(auto backends, make_backends(settings_, limits_, cache_.get(), counters_));
  if (cache_) cache_->wait_for_disk(kDiskPatience);
  pipeline_ = std::make_unique<Pipeline>(control_, *fetcher_, std::move(backends), ledger_, counters_,
                                         pipeline_options(settings_, limits_, cache_.get(), uses_));
  maker_ = std::make_unique<SegmentMaker>(control_, promised_);
  copier_ = std::make_unique<Copier>(control_);
  MILLRACE_TRY(PassedListeners passed, PassedListeners::of_this_process());
  MILLRACE_TRY(sessions_, SessionTable::create(
                              control_, ledger_, {.pipeline = *pipeline_, .lister = *fetcher_, .rings = *fetcher_},
                              *maker_, *copier_, counters_, limits_,
                              {.path = handoff_path(settings_.socket), .admins = admins, .passed = &passed}));
  grpc_ = std::make_unique<GrpcServer>(
      grpc_options(settings_, limits_, highest_descriptor_, settings_file(line_), *fetcher_, cache_.get(), admins,
                   passed),
      GrpcServer::Parts{control_, *sessions_, *pipeline_, counters_, ledger_, cache_.get()});
  operation_ = std::make_unique<Operation>(
      control_, line_, unmapped, settings_, lifetime_,
      LiveParts{ledger_, encoded_, limits_, highest_descriptor_, *fetcher_, *pipeline_, *sessions_, *grpc_});
  MILLRACE_TRY_VOID(grpc_->listen(operation_.get()));
  return passed.check_all_taken();
}

void Daemon::run() {
  std::printf("listening on %s\n", settings_.socket.c_str());
  std::fflush(stdout);
  lifetime_.run({*fetcher_, *pipeline_, *sessions_, *grpc_, *operation_, !line_.config.empty()});
}

}  // namespace millrace
