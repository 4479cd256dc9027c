// What of the settings each part gets. Functions for main()'s thread.
#pragma once

#include <string>

#include "daemon/admit/resource.h"
#include "daemon/cache/image_cache.h"
#include "daemon/cache/policy/use_table.h"
#include "daemon/fetch/fetcher.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/process/live_settings.h"
#include "daemon/serve/handoff/descriptor_plan.h"
#include "daemon/serve/rpc/grpc_server.h"
#include "daemon/settings/settings.h"

namespace millrace {

Budgets budgets_of(const Settings& settings);
DescriptorNeeds descriptor_needs(const Settings& settings);

// What is passed by pointer or reference outlives the part. `cache`: nullptr where there is none.
Fetcher::Options fetcher_options(const Settings& settings, const InForce<Limits>& limits, const UnmappedIds& unmapped,
                                 EncodedPool& pool, ImageCache* cache);
Pipeline::Options pipeline_options(const Settings& settings, const InForce<Limits>& limits, const ImageCache* cache,
                                   UseTable& uses);
// `settings_file`: where they come from; empty: none.
GrpcServer::Options grpc_options(const Settings& settings, const InForce<Limits>& limits,
                                 const InForce<int>& highest_descriptor, const std::string& settings_file,
                                 const Fetcher& fetcher, const ImageCache* cache, const InForce<Admins>& admins,
                                 PassedListeners& passed);

}  // namespace millrace
