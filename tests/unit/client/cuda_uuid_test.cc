#include <catch2/catch.hpp>

#include "proto/cuda/uuid.h"

namespace millrace::cuda {

TEST_CASE("a GPU's UUID is written as nvidia-smi does, and read back", "[cuda]") {
  const Uuid uuid{0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x0E, 0xFF};

  const std::string text = uuid_text(uuid);

  REQUIRE(text == "GPU-00010203-0405-0607-0809-0a0b0c0d0eff");
  REQUIRE(uuid_from_text(text) == uuid);
  REQUIRE(uuid_from_text("GPU-00010203-0405-0607-0809-0A0B0C0D0EFF") == uuid);
}

TEST_CASE("what is no GPU's UUID is none", "[cuda]") {
  const std::string_view text =
      GENERATE(as<std::string_view>{}, "", "GPU", "GPU-", "GPU-0001", "MIG-00010203-0405-0607-0809-0a0b0c0d0eff",
               "00010203-0405-0607-0809-0a0b0c0d0eff", "GPU-00010203-0405-0607-0809-0a0b0c0d0ef",
               "GPU-00010203-0405-0607-0809-0a0b0c0d0eff0", "GPU-00010203-0405-0607-0809-0a0b0c0d0e-f",
               "GPU-00010203-0405-0607-0809-0a0b0c0d0e+1", "GPU-0001020304-05-0607-0809-0a0b0c0d0eff",
               "GPU-00010203-0405-0607-0809-0a0b0c0d0e f");
  CAPTURE(text);

  REQUIRE_FALSE(uuid_from_text(text));
}

}  // namespace millrace::cuda
