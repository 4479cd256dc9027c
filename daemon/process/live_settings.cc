#include "daemon/process/live_settings.h"

#include <unistd.h>

#include <optional>
#include <utility>

#include "daemon/observe/log.h"
#include "daemon/process/budget_text.h"
#include "daemon/process/options.h"
#include "daemon/settings/fair_weights.h"

namespace millrace {

OwnIds own_ids(const UnmappedIds& unmapped) {
  const uid_t own = ::geteuid();
  return {.owner = own == unmapped.user ? std::nullopt : std::optional(own),
          .unmapped_user = unmapped.user,
          .unmapped_group = unmapped.group};
}

Result<PreparedSettings> prepare(Settings settings, const OwnIds& own, const Fetcher& fetcher) {
  MILLRACE_TRY(const int highest_descriptor, prepare_descriptors(descriptor_needs(settings)));
  MILLRACE_TRY(Admins admins, Admins::find(settings.admins, own));
  MILLRACE_TRY(FairWeights weights, parse_fair_weights(settings.fair_weights));
  MILLRACE_TRY(RootFolders roots, fetcher.open_roots(settings.roots));
  std::vector<std::string> remarks = settings.remarks;
  if (std::optional<std::string> much = too_much_memory(settings)) remarks.push_back(*std::move(much));
  // Last, when nothing else can go wrong: the opener then has what the daemon is about to have.
  if (const Result<void> told = fetcher.tell_opener(); !told)
    remarks.push_back("files.roots: clients get nothing of new ones yet: " + told.error().message);
  return PreparedSettings{.settings = std::move(settings),
                          .admins = std::move(admins),
                          .weights = std::move(weights),
                          .roots = std::move(roots),
                          .highest_descriptor = highest_descriptor,
                          .remarks = std::move(remarks)};
}

// daemon.drain_seconds is looked at where it is, in the settings in force.
void put_in_force(PreparedSettings prepared, const LiveParts& parts) {
  const Settings& settings = prepared.settings;
  start_log(settings.log_level);
  parts.ledger.set_bounds(budgets_of(settings));
  parts.encoded.limit_to(settings.encoded_in_flight);
  parts.limits.put(settings.limits);
  parts.highest_descriptor.put(prepared.highest_descriptor);
  parts.fetcher.use_roots(std::move(prepared.roots));
  parts.pipeline.settings_changed(settings.slow);
  parts.pipeline.set_weights(std::move(prepared.weights));
  parts.grpc.apply({.roots = settings.roots, .admins = std::move(prepared.admins)});
}

}  // namespace millrace
