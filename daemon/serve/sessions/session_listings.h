// The datasets that are made for a session: folder trees that are listed for it, and lists of its client's own, which
// come in parts. What the lister says on its own thread arrives on the control thread, and only while the session wants
// it. What a listing takes is charged to the session's user while it grows.
//
//   begin() ──▶ listed ──▶ `done`
//   begin_own() ──add()──add()──▶ end_own() ──▶ put together ──▶ `done`
//        └─────────┴── drop_own(), or an error ──▶ (gone)
//
// Thread-bound(control).
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/admit/ledger.h"
#include "daemon/model/files/folder_lister.h"
#include "daemon/observe/cost.h"
#include "daemon/serve/sessions/shared_listings.h"

namespace millrace {

class SessionListings {
 public:
  // At most `max_files` a tree. `control` and `lister` outlive it.
  SessionListings(boost::asio::io_context& control, FolderLister& lister, std::shared_ptr<SharedListings> shared,
                  std::shared_ptr<const Caller> caller, std::shared_ptr<Account> account,
                  std::shared_ptr<SessionCosts> costs, std::uint64_t max_files)
      : control_(control),
        lister_(lister),
        shared_(std::move(shared)),
        caller_(std::move(caller)),
        account_(std::move(account)),
        costs_(std::move(costs)),
        max_files_(max_files) {}
  ~SessionListings() { stop(); }
  SessionListings(const SessionListings&) = delete;
  SessionListings& operator=(const SessionListings&) = delete;

  using Progress = std::function<void(std::uint64_t)>;
  using Done = std::function<void(Result<std::shared_ptr<const Dataset>>)>;

  // `progress` (files so far) and then `done` are called unless stop() comes first. kExhausted: too many are queued;
  // kPrecondition: stopped.
  Result<void> begin(std::string path_untrusted, FileChoice choice, Progress progress, Done done);

  // REQUIRES: no list of this id is being made.
  void begin_own(DatasetId id, std::string folder_untrusted);
  bool makes_own(DatasetId id) const { return own_.contains(id); }
  // Samples so far. The list is gone with an error: kExhausted, there is no room for more; kInvalid, the parts before are
  // of another kind, with ranges or without. REQUIRES: makes_own().
  Result<std::uint64_t> add(DatasetId id, FilesPart part);
  // No part follows; as begin(). REQUIRES: makes_own().
  Result<void> end_own(DatasetId id, Done done);
  void drop_own(DatasetId id) { own_.erase(id); }

  void stop() {
    gone_->stop();
    own_.clear();
  }  // nobody wants any of them any more, nor one that would begin

 private:
  struct Growing;
  struct OwnList {  // of a client, as far as it has come
    std::string folder_untrusted;
    std::vector<FilesPart> parts;
    std::optional<bool> with_ranges;  // nullopt: no part has come
    std::uint64_t paths = 0, samples = 0;
    std::shared_ptr<Growing> growing;  // shared with the task that it becomes
  };

  Result<void> hand_over(ListTask task, const std::shared_ptr<Growing>& growing, Progress progress, Done done);

  boost::asio::io_context& control_;
  FolderLister& lister_;
  std::shared_ptr<SharedListings> shared_;                         // shared with listings under way
  std::shared_ptr<const Caller> caller_;                           // shared with the lister
  std::shared_ptr<Account> account_;                               // shared: see Ledger::account()
  std::shared_ptr<SessionCosts> costs_;                            // shared with listings under way
  std::shared_ptr<StopFlag> gone_ = std::make_shared<StopFlag>();  // shared with listings under way
  const std::uint64_t max_files_;
  std::map<DatasetId, OwnList> own_;  // bounded by Resource::kDatasets
};

}  // namespace millrace
