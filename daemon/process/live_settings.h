// What can change while the daemon runs, and how it gets to the parts: prepared on whatever thread may wait, put in force
// on the control thread, all at once. A key of the table that is Counts::kLive is here, and no other.
//
//   SettingsFile reads ─▶ prepare(): names looked up, roots opened, descriptors asked for ─▶ put_in_force()
#pragma once

#include "daemon/admit/ledger.h"
#include "daemon/fetch/fetcher.h"
#include "daemon/fetch/open/unmapped_ids.h"
#include "daemon/model/bytes/encoded_pool.h"
#include "daemon/model/fair_weights.h"
#include "daemon/model/in_force.h"
#include "daemon/model/limits.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/serve/rpc/grpc_server.h"
#include "daemon/serve/sessions/session_table.h"
#include "daemon/settings/admins.h"
#include "daemon/settings/settings.h"
#include "proto/base/result.h"

namespace millrace {

struct LiveParts {
  Ledger& ledger;
  EncodedPool& encoded;
  InForce<Limits>& limits;
  InForce<int>& highest_descriptor;
  Fetcher& fetcher;
  Pipeline& pipeline;
  SessionTable& sessions;
  GrpcServer& grpc;
};

// The process's own ids, among others that it cannot tell apart.
OwnIds own_ids(const UnmappedIds& unmapped);

struct PreparedSettings {
  Settings settings;  // all of them, as they will be in force
  Admins admins;
  FairWeights weights;
  RootFolders roots;
  int highest_descriptor = 0;
  std::vector<std::string> remarks{};  // what the administrator who has ordered it should know
};

// May wait, for disks, for directory services and for the opener; thread-safe. `settings`: what is to be in force.
// Errors: those of Admins::find(), parse_fair_weights(), Fetcher::open_roots() and prepare_descriptors().
Result<PreparedSettings> prepare(Settings settings, const OwnIds& own, const Fetcher& fetcher);

// Thread-bound(control).
void put_in_force(PreparedSettings prepared, const LiveParts& parts);

}  // namespace millrace
