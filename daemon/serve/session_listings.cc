#include "daemon/serve/session_listings.h"

#include <boost/asio/post.hpp>
#include <utility>

namespace millrace {

Result<void> SessionListings::begin(std::string path_untrusted, FileChoice choice,
                                    std::function<void(std::uint64_t)> progress,
                                    std::function<void(Result<std::shared_ptr<const Dataset>>)> done) {
  if (gone_->stopped()) return Error{Code::kPrecondition, "the session is closed"};
  const auto here = [&control = control_, gone = gone_](auto call) {
    boost::asio::post(control, [gone, call = std::move(call)]() mutable {
      if (!gone->stopped()) call();
    });
  };
  ListTask task{.path_untrusted = std::move(path_untrusted),
                .choice = std::move(choice),
                .caller = caller_,
                .stop = gone_,
                .max_files = max_files_,
                .progress = [here, progress = std::move(progress)](
                                std::uint64_t files) { here([progress, files] { progress(files); }); },
                .done =
                    [here, done = std::move(done)](Result<std::shared_ptr<const Dataset>> listed) {
                      here([done, listed = std::move(listed)]() mutable { done(std::move(listed)); });
                    }};
  if (lister_.try_list(std::move(task))) return {};
  return Error{Code::kExhausted, "too many listings and reads are queued; try again when some are done"};
}

}  // namespace millrace
