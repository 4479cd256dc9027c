#include <catch2/catch.hpp>
#include <optional>

#include "daemon/serve/session_listings.h"

namespace millrace {
namespace {

// Keeps what it is to list; full: takes nothing.
struct KeepingLister final : FolderLister {
  bool try_list(ListTask&& task) override {
    if (full) return false;
    kept.emplace(std::move(task));
    return true;
  }
  bool full = false;
  std::optional<ListTask> kept;
};

struct Rig {
  Result<void> begin() {
    return listings.begin(
        "/x", {}, [this](std::uint64_t files) { seen = files; }, [this](const auto&) { done = true; });
  }
  void list() {
    lister.kept->progress(5);
    lister.kept->done(Error{Code::kNotFound, "the dataset is empty"});
  }

  boost::asio::io_context control;
  KeepingLister lister;
  Ledger ledger{Budgets{}};
  SessionListings listings{control,
                           lister,
                           std::make_shared<SharedListings>(),
                           std::make_shared<const Caller>(),
                           ledger.account({UserId{1000}, SessionId{1}}),
                           10};
  std::uint64_t seen = 0;
  bool done = false;
};

}  // namespace

TEST_CASE("what a lister says arrives on the control thread, not where it is said", "[serve]") {
  Rig rig;
  REQUIRE(rig.begin().has_value());
  REQUIRE(rig.lister.kept->max_files == 10);

  rig.list();
  REQUIRE_FALSE(rig.done);
  rig.control.run();

  REQUIRE(rig.seen == 5);
  REQUIRE(rig.done);
}

TEST_CASE("nobody is told of a listing whose session is gone, and no other begins", "[serve]") {
  Rig rig;
  REQUIRE(rig.begin().has_value());

  rig.list();
  rig.listings.stop();
  rig.control.run();

  REQUIRE(rig.lister.kept->stop->stopped());
  REQUIRE(rig.seen == 0);
  REQUIRE_FALSE(rig.done);
  REQUIRE(rig.begin().error().code == Code::kPrecondition);
}

TEST_CASE("a listing that finds no room in the queue is refused", "[serve]") {
  Rig rig;
  rig.lister.full = true;

  REQUIRE(rig.begin().error().code == Code::kExhausted);
}

}  // namespace millrace
