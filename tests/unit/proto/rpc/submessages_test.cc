// Messages within a message, counted before they are made.
#include <catch2/catch.hpp>
#include <string>

#include "millrace/v1/session.pb.h"
#include "proto/rpc/submessages.h"

using namespace millrace;

namespace {

std::size_t count_in(const std::string& bytes, std::size_t most = 1'000) {
  return submessages(std::as_bytes(std::span(bytes)), *v1::OpenSessionRequest::descriptor(), most);
}

}  // namespace

TEST_CASE("messages within a message are counted at every depth, and nothing else is", "[rpc]") {
  v1::OpenSessionRequest request;
  CHECK(count_in(request.SerializeAsString()) == 0);
  request.set_ticket(std::string(16, '\n'));  // which would be the head of a message, were it none
  request.set_slots(7);
  CHECK(count_in(request.SerializeAsString()) == 0);
  v1::Recipe& recipe = *request.mutable_recipe();
  recipe.mutable_resize()->mutable_random_shorter_side()->add_sides(9);
  CHECK(count_in(request.SerializeAsString()) == 3);
  for (int i = 0; i < 10; ++i) recipe.add_views()->add_steps()->set_posterize(3);
  CHECK(count_in(request.SerializeAsString()) == 23);
}

TEST_CASE("counting stops beyond the most that there may be", "[rpc]") {
  v1::OpenSessionRequest request;
  for (int i = 0; i < 100; ++i) request.mutable_recipe()->add_views();

  CHECK(count_in(request.SerializeAsString(), 101) == 101);
  CHECK(count_in(request.SerializeAsString(), 50) == 51);
}

TEST_CASE("bytes that are no message count as far as they are one", "[rpc]") {
  v1::OpenSessionRequest request;
  request.mutable_recipe()->add_views();
  const std::string bytes = request.SerializeAsString();

  CHECK(count_in(bytes.substr(0, bytes.size() - 1)) <= 2);
  CHECK(count_in(bytes + "\xff\xff\xff") == 2);
  CHECK(count_in(std::string(1'000, '\x4a')) <= 1'000);
}
