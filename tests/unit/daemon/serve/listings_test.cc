#include <catch2/catch.hpp>
#include <optional>

#include "daemon/serve/sessions/session_listings.h"

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
                           std::make_shared<SessionCosts>(),
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

TEST_CASE("a client's own list is handed over once all its parts are there", "[serve]") {
  Rig rig;
  rig.listings.begin_own(DatasetId{4}, "/x");
  REQUIRE(rig.listings.makes_own(DatasetId{4}));

  CHECK(*rig.listings.add(DatasetId{4}, {std::string("a\0b\0", 4), {1, 2}}) == 2);
  CHECK(*rig.listings.add(DatasetId{4}, {std::string("c\0", 2), {3}}) == 3);
  CHECK_FALSE(rig.lister.kept);
  REQUIRE(rig.listings.end_own(DatasetId{4}, [&](const auto&) { rig.done = true; }));

  REQUIRE(rig.lister.kept);
  CHECK(rig.lister.kept->path_untrusted == "/x");
  CHECK(rig.lister.kept->files.size() == 2);
  CHECK_FALSE(rig.listings.makes_own(DatasetId{4}));
  rig.lister.kept->done(Error{Code::kDenied, "no"});
  rig.control.run();
  CHECK(rig.done);
}

TEST_CASE("a client's own list of too many files is gone, and so is one that is dropped or empty", "[serve]") {
  Rig rig;
  for (const std::uint64_t id : {1, 2, 3}) rig.listings.begin_own(DatasetId{id}, "/x");

  CHECK(rig.listings.add(DatasetId{1}, {std::string(11, '\0'), {}}).error().code == Code::kExhausted);
  CHECK_FALSE(rig.listings.makes_own(DatasetId{1}));
  rig.listings.drop_own(DatasetId{2});
  CHECK_FALSE(rig.listings.makes_own(DatasetId{2}));
  CHECK(rig.listings.end_own(DatasetId{3}, [](const auto&) {}).error().code == Code::kNotFound);
  CHECK_FALSE(rig.lister.kept);
}

TEST_CASE("a list of parts counts samples and files, is charged for both, and has no parts without ranges", "[serve]") {
  Rig rig;
  for (const std::uint64_t id : {1, 2, 3, 4}) rig.listings.begin_own(DatasetId{id}, "/x");
  const auto of = [](std::size_t samples, std::string paths = std::string("a\0", 2)) {
    return FilesPart{.paths_untrusted = std::move(paths),
                     .labels = {},
                     .ranges_untrusted = RangesInFiles{.files = std::vector<std::uint32_t>(samples),
                                                       .offsets = std::vector<std::uint64_t>(samples),
                                                       .lengths = std::vector<std::uint64_t>(samples)}};
  };

  CHECK(*rig.listings.add(DatasetId{1}, of(7)) == 7);
  CHECK(rig.ledger.in_use(Resource::kRequests) >= 7 * (20 + 32) + 48);
  CHECK(*rig.listings.add(DatasetId{1}, of(3, "")) == 10);
  CHECK(rig.listings.add(DatasetId{1}, of(1)).error().code == Code::kExhausted);
  CHECK(rig.listings.add(DatasetId{2}, of(0, std::string(22, '\0'))).error().code == Code::kExhausted);
  CHECK(*rig.listings.add(DatasetId{3}, of(1)) == 1);
  const Error mixed = rig.listings.add(DatasetId{3}, {std::string("a\0", 2), {}}).error();
  CHECK(mixed.code == Code::kInvalid);
  CHECK_FALSE(rig.listings.makes_own(DatasetId{3}));
  CHECK(*rig.listings.add(DatasetId{4}, of(0)) == 0);
  CHECK(rig.listings.end_own(DatasetId{4}, [](const auto&) {}).error().code == Code::kNotFound);
}

TEST_CASE("a listing that finds no room in the queue is refused", "[serve]") {
  Rig rig;
  rig.lister.full = true;

  REQUIRE(rig.begin().error().code == Code::kExhausted);
}

}  // namespace millrace
