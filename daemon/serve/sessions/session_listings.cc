#include "daemon/serve/sessions/session_listings.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

namespace millrace {

// What a listing takes while it is made. The control thread's until it is the lister's.
struct SessionListings::Growing {
  std::shared_ptr<Account> account;  // shared: see Ledger::account()
  Charge charge;

  Result<void> grow_to(Bytes bytes) {
    if (bytes.count <= charge.amount()) return {};
    MILLRACE_TRY(Charge more, account->charge(Resource::kRequests, bytes.count - charge.amount()));
    charge.absorb(std::move(more));
    return {};
  }

  // What stands in for it, and is charged from here on.
  Result<std::shared_ptr<const Dataset>> keep(SharedListings& shared, std::shared_ptr<const Dataset> listed,
                                              UserId user) {
    MILLRACE_TRY_VOID(grow_to(listed->memory()));
    return shared.keep(std::move(listed), std::move(charge), user);
  }
};

Result<void> SessionListings::begin(std::string path_untrusted, FileChoice choice, Progress progress, Done done) {
  const auto growing = std::make_shared<Growing>(Growing{account_, {}});
  ListTask task{.path_untrusted = std::move(path_untrusted), .choice = std::move(choice)};
  return hand_over(std::move(task), growing, std::move(progress), std::move(done));
}

void SessionListings::begin_own(DatasetId id, std::string folder_untrusted) {
  own_.emplace(id, OwnList{.folder_untrusted = std::move(folder_untrusted),
                           .parts = {},
                           .with_ranges = {},
                           .growing = std::make_shared<Growing>(Growing{account_, {}})});
}

Result<std::uint64_t> SessionListings::add(DatasetId id, FilesPart part) {
  OwnList& list = own_.at(id);
  const auto gone = [&](Error why) {
    own_.erase(id);
    return why;
  };
  const bool with_ranges = part.ranges_untrusted.has_value();
  if (list.with_ranges.value_or(with_ranges) != with_ranges)
    return gone({Code::kInvalid, "dataset_id: a list is of ListFiles or of ListParts, not of both"});
  list.with_ranges = with_ranges;
  const auto paths = static_cast<std::uint64_t>(std::ranges::count(part.paths_untrusted, '\0'));
  const std::uint64_t samples = with_ranges ? part.ranges_untrusted->files.size() : paths;
  list.paths += paths;
  list.samples += samples;
  if (std::max(list.paths, list.samples) > max_files_)
    return gone(
        {Code::kExhausted, "more than " + std::to_string(max_files_) + (with_ranges ? " samples" : " files") +
                               ": make a dataset of fewer, or raise limits.dataset_files in the daemon's settings"});
  // As if its entries were there already; beside ranges, each path has an entry and a stamp.
  const std::uint64_t entries = samples * (sizeof(Dataset::Entry) + (with_ranges ? sizeof(Dataset::Range) : 0));
  const std::uint64_t files = with_ranges ? paths * 2 * sizeof(Dataset::StampedFile) : 0;
  const std::uint64_t bytes = part.memory().count + entries + files;
  if (const Result<void> room = list.growing->grow_to({list.growing->charge.amount() + bytes}); !room)
    return gone(room.error());
  if (paths + samples > 0) list.parts.push_back(std::move(part));
  return list.samples;
}

Result<void> SessionListings::end_own(DatasetId id, Done done) {
  OwnList list = std::move(own_.extract(id).mapped());
  if (list.samples == 0) return Error{Code::kNotFound, "paths: the list is empty; a dataset needs a file"};
  ListTask task{.path_untrusted = std::move(list.folder_untrusted), .files = std::move(list.parts)};
  return hand_over(std::move(task), list.growing, {}, std::move(done));
}

Result<void> SessionListings::hand_over(ListTask task, const std::shared_ptr<Growing>& growing, Progress progress,
                                        Done done) {
  if (gone_->stopped()) return Error{Code::kPrecondition, "the session is closed"};
  const auto here = [&control = control_, gone = gone_](auto call) {
    boost::asio::post(control, [gone, call = std::move(call)]() mutable {
      if (!gone->stopped()) call();
    });
  };
  task.caller = caller_;
  task.stop = gone_;
  task.max_files = max_files_;
  if (progress)
    task.progress = [here, progress = std::move(progress)](std::uint64_t files) {
      here([progress, files] { progress(files); });
    };
  task.room = [growing](Bytes bytes) { return growing->grow_to(bytes); };
  task.took = [&control = control_, costs = costs_](std::chrono::nanoseconds cpu) {
    boost::asio::post(control, [costs, cpu] { costs->add({.fetch_cpu = cpu}); });
  };
  task.done = [here, growing, shared = shared_, user = caller_->user(),
               done = std::move(done)](Result<std::shared_ptr<const Dataset>> listed) {
    if (listed) listed = growing->keep(*shared, *std::move(listed), user);
    growing->charge.refund();
    here([done, listed = std::move(listed)]() mutable { done(std::move(listed)); });
  };
  if (lister_.try_list(std::move(task))) return {};
  return Error{Code::kExhausted, "too many listings and reads are queued; try again when some are done"};
}

}  // namespace millrace
