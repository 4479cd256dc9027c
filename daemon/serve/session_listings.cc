#include "daemon/serve/session_listings.h"

#include <boost/asio/post.hpp>
#include <utility>

namespace millrace {
namespace {

// What a listing takes while it is made. The lister's thread.
struct Growing {
  std::shared_ptr<Account> account;  // shared: see Ledger::account()
  Charge charge;

  Result<void> grow_to(Bytes bytes) {
    if (bytes.count <= charge.amount()) return {};
    MILLRACE_TRY(Charge more, account->charge(Resource::kRequests, bytes.count - charge.amount()));
    charge.absorb(std::move(more));
    return {};
  }
};

Result<std::shared_ptr<const Dataset>> keep(SharedListings& shared, Growing& growing,
                                            std::shared_ptr<const Dataset> listed, UserId user) {
  MILLRACE_TRY_VOID(growing.grow_to(listed->memory()));
  return shared.keep(std::move(listed), std::move(growing.charge), user);
}

}  // namespace

Result<void> SessionListings::begin(std::string path_untrusted, FileChoice choice,
                                    std::function<void(std::uint64_t)> progress,
                                    std::function<void(Result<std::shared_ptr<const Dataset>>)> done) {
  if (gone_->stopped()) return Error{Code::kPrecondition, "the session is closed"};
  const auto here = [&control = control_, gone = gone_](auto call) {
    boost::asio::post(control, [gone, call = std::move(call)]() mutable {
      if (!gone->stopped()) call();
    });
  };
  const auto growing = std::make_shared<Growing>(Growing{account_, {}});  // shared by the task's two calls
  ListTask task{.path_untrusted = std::move(path_untrusted),
                .choice = std::move(choice),
                .caller = caller_,
                .stop = gone_,
                .max_files = max_files_,
                .progress = [here, progress = std::move(progress)](
                                std::uint64_t files) { here([progress, files] { progress(files); }); },
                .room = [growing](Bytes bytes) { return growing->grow_to(bytes); },
                .done =
                    [here, growing, shared = shared_, user = caller_->user(),
                     done = std::move(done)](Result<std::shared_ptr<const Dataset>> listed) {
                      if (listed) listed = keep(*shared, *growing, *std::move(listed), user);
                      growing->charge.refund();
                      here([done, listed = std::move(listed)]() mutable { done(std::move(listed)); });
                    }};
  if (lister_.try_list(std::move(task))) return {};
  return Error{Code::kExhausted, "too many listings and reads are queued; try again when some are done"};
}

}  // namespace millrace
