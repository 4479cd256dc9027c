// The composition root: what millraced is made of, in which order it is made, and in which it goes.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>

#include "daemon/admit/ledger.h"
#include "daemon/cache/image_cache.h"
#include "daemon/cache/policy/use_table.h"
#include "daemon/fetch/fetcher.h"
#include "daemon/memory/copier.h"
#include "daemon/memory/segment_maker.h"
#include "daemon/model/in_force.h"
#include "daemon/model/limits.h"
#include "daemon/observe/counters.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/process/command_line.h"
#include "daemon/process/lifetime.h"
#include "daemon/process/operation.h"
#include "daemon/process/process.h"
#include "daemon/serve/rpc/grpc_server.h"
#include "daemon/serve/sessions/session_table.h"
#include "daemon/settings/settings.h"
#include "proto/base/result.h"

namespace millrace {

// Everything that runs. It goes in the opposite order of its declarations, so that each part outlives those that use it.
// For main()'s thread, which becomes the control thread in run().
class Daemon {
 public:
  // `line`: what the settings come from, and come from again.
  Daemon(Settings settings, CommandLine line);
  // All parts, which listen when it returns. An error says what the operator has to change.
  Result<void> assemble(const UnmappedIds& unmapped);
  // Until it has been told to stop and has drained. REQUIRES: assemble() went well.
  void run();

 private:
  Settings settings_;  // in force: what can change while it runs, `operation_` changes
  const CommandLine line_;
  InForce<Limits> limits_;
  InForce<int> highest_descriptor_{0};
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
  std::unique_ptr<Operation> operation_;
  std::unique_ptr<GrpcServer> grpc_;
};

}  // namespace millrace
