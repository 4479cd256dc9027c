// Files that are no samples, there and back.
#include <catch2/catch.hpp>
#include <set>

#include "proto/rpc/skipped_files_message.h"

using namespace millrace;

TEST_CASE("files that are no samples come back as they were, for every reason of the schema", "[rpc]") {
  std::set<SkipReason> reasons;
  for (int value = v1::SKIP_REASON_NOT_ASKED; value < v1::SkipReason_ARRAYSIZE; ++value) {
    v1::SkippedFiles message;
    message.set_reason(static_cast<v1::SkipReason>(value));
    message.set_extension("bmp");
    message.set_files(7);
    message.add_examples("a/\xff.bmp");
    message.add_examples("b.bmp");

    const SkippedFiles files = from_message(message);

    CHECK(reasons.insert(files.reason).second);
    CHECK(to_message(files).SerializeAsString() == message.SerializeAsString());
  }
}

TEST_CASE("a reason that a newer daemon has added is the plainest one", "[rpc]") {
  v1::SkippedFiles message;
  message.set_reason(static_cast<v1::SkipReason>(77));

  CHECK(from_message(message).reason == SkipReason::kNotAsked);
}
