// The folder trees that a session has listed for it. What the lister says on its own thread arrives on the control
// thread, and only while the session wants it. What a listing takes is charged to the session's user while it grows.
// Thread-bound(control).
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "daemon/admit/ledger.h"
#include "daemon/model/folder_lister.h"
#include "daemon/serve/shared_listings.h"

namespace millrace {

class SessionListings {
 public:
  // At most `max_files` a tree. `control` and `lister` outlive it.
  SessionListings(boost::asio::io_context& control, FolderLister& lister, std::shared_ptr<SharedListings> shared,
                  std::shared_ptr<const Caller> caller, std::shared_ptr<Account> account, std::uint64_t max_files)
      : control_(control),
        lister_(lister),
        shared_(std::move(shared)),
        caller_(std::move(caller)),
        account_(std::move(account)),
        max_files_(max_files) {}
  ~SessionListings() { stop(); }
  SessionListings(const SessionListings&) = delete;
  SessionListings& operator=(const SessionListings&) = delete;

  // `progress` (files so far) and then `done` are called unless stop() comes first. kExhausted: too many are queued;
  // kPrecondition: stopped.
  Result<void> begin(std::string path_untrusted, FileChoice choice, std::function<void(std::uint64_t)> progress,
                     std::function<void(Result<std::shared_ptr<const Dataset>>)> done);

  void stop() { gone_->stop(); }  // nobody wants any of them any more, nor one that would begin

 private:
  boost::asio::io_context& control_;
  FolderLister& lister_;
  std::shared_ptr<SharedListings> shared_;                         // shared with listings under way
  std::shared_ptr<const Caller> caller_;                           // shared with the lister
  std::shared_ptr<Account> account_;                               // shared: see Ledger::account()
  std::shared_ptr<StopFlag> gone_ = std::make_shared<StopFlag>();  // shared with listings under way
  const std::uint64_t max_files_;
};

}  // namespace millrace
