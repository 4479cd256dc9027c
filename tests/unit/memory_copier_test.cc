// Copies beside the control thread: whose turn it is, and the end.
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
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

  copier.run(zeroings(turn, 200), [&] { order += "large "; });
  copier.run(zeroings(small, 1), [&] { order += "small "; });
  while (order.size() < 12) rig.control.run_one();

  REQUIRE(order == "small large ");
}

TEST_CASE("what was asked for is done on the control thread, and before the copier goes", "[memory]") {
  Rig rig;
  auto copier = std::make_unique<Copier>(rig.control);
  std::vector<std::byte> memory(1000, std::byte{1});
  int done = 0;
  copier->run(zeroings(memory, 1), [&] { ++done; });

  copier.reset();

  REQUIRE(memory == std::vector<std::byte>(1000));
  REQUIRE(done == 0);
  rig.control.poll();
  REQUIRE(done == 1);
}

}  // namespace millrace
