#include "daemon/process/options.h"

#include <unistd.h>

#include <optional>

#include "daemon/serve/socket_path.h"

namespace millrace {

namespace {

// One is left to those whose files come fast, whatever others wait for.
std::uint32_t fetch_threads(const Settings& settings) {
  return settings.fetch_threads + 1;
}

}  // namespace

Budgets budgets_of(const Settings& settings) {
  return budgets_of(settings.limits.session,
                    {.segments = settings.segment_budget,
                     .encoded = settings.encoded_in_flight,
                     .decoding = settings.decoding,
                     .requests = settings.requests,
                     .user_percent = settings.user_percent,
                     .parts = others_can_reach(settings.socket) ? Parts::kOfFree : Parts::kNo});
}

DescriptorNeeds descriptor_needs(const Settings& settings) {
  return {
      .sessions = settings.limits.session, .fetch_threads = fetch_threads(settings), .roots = settings.roots.size()};
}

Fetcher::Options fetcher_options(const Settings& settings, const UnmappedIds& unmapped, EncodedPool& pool,
                                 ImageCache* cache) {
  return {.roots = settings.roots,
          .unmapped = unmapped,
          .threads = fetch_threads(settings),
          .limits = settings.limits.sample,
          .pool = &pool,
          .kept = cache,
          .settled = settings.settled};
}

Pipeline::Options pipeline_options(const Settings& settings, const ImageCache* cache, UseTable& uses) {
  return {.limits = settings.limits,
          .slow = settings.slow,
          .cache_seed = cache != nullptr ? cache->seed() : 0,
          .slow_reads = settings.fetch_threads,
          .uses = cache != nullptr ? &uses : nullptr};
}

GrpcServer::Options grpc_options(const Settings& settings, const std::string& settings_file, const Fetcher& fetcher,
                                 const ImageCache* cache, const UnmappedIds& unmapped, int highest_descriptor) {
  const uid_t own = ::geteuid();
  return {.socket = settings.socket,
          .version = MILLRACE_VERSION,
          .settings_file = settings_file,
          .roots = settings.roots,
          .missing_roots = [&fetcher] { return fetcher.missing_roots(); },
          .indexes_not_kept = cache != nullptr ? cache->hindrance() : "",
          .owner = own == unmapped.user ? std::nullopt : std::optional(own),
          .limits = settings.limits,
          .highest_descriptor = highest_descriptor};
}

}  // namespace millrace
