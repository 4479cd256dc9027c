// Copies beside the control thread: whose turn it is, and the end.
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "daemon/memory/copier.h"

namespace millrace {
namespace {

struct Rig {
  boost::asio::io_context control{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{control.get_executor()};
};

constexpr UserId kOne{1}, kTwo{2};

// So many zeroings of the whole of `memory`.
std::vector<Copy> zeroings(std::vector<std::byte>& memory, std::size_t count) {
  return std::vector<Copy>(count, Copy{memory, {}});
}

}  // namespace

TEST_CASE("a small repair does not wait for all of a large one", "[memory]") {
  Rig rig;
  Copier copier(rig.control);
  std::vector<std::byte> turn(Copier::kTurn.count), small(1);
  std::string order;

  copier.run(kOne, zeroings(turn, 200), [&] { order += "large "; });
  copier.run(kOne, zeroings(small, 1), [&] { order += "small "; });
  while (order.size() < 12) rig.control.run_one();

  REQUIRE(order == "small large ");
}

TEST_CASE("a user's repair waits for a turn of another's, however large that one is and however many there are",
          "[memory]") {
  Rig rig;
  std::vector<std::byte> whole(20 * Copier::kTurn.count), small(1);
  std::string order;
  Copier copier(rig.control);

  for (int i = 0; i < 4; ++i) copier.run(kOne, zeroings(whole, 1), [&] { order += "large "; });
  copier.run(kTwo, zeroings(small, 1), [&] { order += "small "; });
  while (order.empty()) rig.control.run_one();

  REQUIRE(order == "small ");
}

TEST_CASE("what is copied in several turns is what would be copied in one", "[memory]") {
  Rig rig;
  constexpr std::size_t kBytes = 3 * Copier::kTurn.count + 5, kBy = 7;
  const bool down = GENERATE(true, false);
  std::vector<std::byte> memory(kBytes + kBy), expected;
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i * 2'654'435'761U >> 13);
  expected = memory;
  const std::size_t from = down ? kBy : 0, to = down ? 0 : kBy;
  std::memmove(expected.data() + to, expected.data() + from, kBytes);
  {
    Copier copier(rig.control);
    copier.run(kOne, {Copy{MutableByteView(memory).subspan(to, kBytes), ByteView(memory).subspan(from, kBytes)}},
               [] {});
  }

  CHECK(memory == expected);
}

TEST_CASE("what was asked for is done on the control thread, and before the copier goes", "[memory]") {
  Rig rig;
  auto copier = std::make_unique<Copier>(rig.control);
  std::vector<std::byte> memory(1000, std::byte{1});
  int done = 0;
  copier->run(kOne, zeroings(memory, 1), [&] { ++done; });

  copier.reset();

  REQUIRE(memory == std::vector<std::byte>(1000));
  REQUIRE(done == 0);
  rig.control.poll();
  REQUIRE(done == 1);
}

}  // namespace millrace
