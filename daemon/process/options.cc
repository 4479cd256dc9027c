#include "daemon/process/options.h"

#include <unistd.h>

#include "daemon/backend/cpu/cpu_backend.h"
#include "daemon/backend/cuda/cuda_settings.h"
#include "daemon/fetch/open/roots.h"
#include "daemon/settings/fair_weights.h"

#include "daemon/door/socket_path.h"

namespace millrace {

namespace {

// One is left to those whose files come fast, whatever others wait for.
std::uint32_t fetch_threads(const Settings& settings) {
  return readers_of(settings).threads;
}

}  // namespace

Budgets budgets_of(const Settings& settings) {
  return budgets_of(settings.limits.session,
                    {.segments = settings.segment_budget,
                     .encoded = settings.encoded_in_flight,
                     .decoding = settings.decoding,
                     .requests = settings.requests,
                     .device_tensors = cuda_tensors(settings.groups.of<CudaSettings>()),
                     .user_percent = settings.user_percent,
                     .parts = others_can_reach(settings.socket) ? Parts::kOfFree : Parts::kNo});
}

DescriptorNeeds descriptor_needs(const Settings& settings) {
  const Result<std::uint64_t> decoders = most_decoders(settings.groups.of<CpuSettings>());
  // One that may come later is counted on where it has come already.
  const std::string wanted = opener_in_use(settings);
  const bool opener =
      !wanted.empty() && (wanted != kOpenerOnceThere || ::access(std::string(kUsualOpener).c_str(), R_OK | W_OK) == 0);
  return {.sessions = settings.limits.session,
          .fetch_threads = fetch_threads(settings) + static_cast<std::uint32_t>(kMostStandIns),
          .roots = settings.roots.size(),
          .decoders = decoders ? *decoders : 0,  // what is wrong with the lanes is said when they are made
          .opener = opener ? WithOpener::kYes : WithOpener::kNo,
          .device_memory = cuda_tensors(settings.groups.of<CudaSettings>()).count != 0};
}

Fetcher::Options fetcher_options(const Settings& settings, const InForce<Limits>& limits, const UnmappedIds& unmapped,
                                 EncodedPool& pool, ImageCache* cache) {
  return {.roots = settings.roots,
          .unmapped = unmapped,
          .opener = opener_in_use(settings),
          .opens_for_root = settings.as_root,
          .threads = fetch_threads(settings),
          .limits = limits,
          .pool = &pool,
          .kept = cache,
          .stable_after = settings.stable_after};
}

Pipeline::Options pipeline_options(const Settings& settings, const InForce<Limits>& limits, const ImageCache* cache,
                                   UseTable& uses) {
  const Result<FairWeights> weights = parse_fair_weights(settings.fair_weights);
  return {.limits = limits,
          .slow = settings.slow,
          .cache_seed = cache != nullptr ? cache->seed() : 0,
          .slow_reads = settings.fetch_threads,
          .uses = cache != nullptr ? &uses : nullptr,
          .weights = weights ? *weights : FairWeights{}};  // checked with the settings
}

GrpcServer::Options grpc_options(const Settings& settings, const InForce<Limits>& limits,
                                 const InForce<int>& highest_descriptor, const std::string& settings_file,
                                 const Fetcher& fetcher, const ImageCache* cache, const InForce<Admins>& admins,
                                 PassedListeners& passed) {
  return {.socket = settings.socket,
          .version = MILLRACE_VERSION,
          .settings_file = settings_file,
          .roots = settings.roots,
          .missing_roots = [&fetcher] { return fetcher.missing_roots(); },
          .indexes_not_kept = cache != nullptr ? cache->hindrance() : "",
          .cache_memory = settings.cache_memory,
          .admins = admins,
          .limits = limits,
          .highest_descriptor = highest_descriptor,
          .passed = &passed};
}

}  // namespace millrace
