// What a simulated card reads in an xclbin, which is a file and may say anything.
#include <xclbin.h>

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "hls/card/shim/program.h"
#include "hls/card/wire.h"
#include "hls/card/xclbin/xclbin_file.h"

namespace millrace::card {
namespace {

// In memory of its very size, so that AddressSanitizer sees who reads beyond.
struct File {
  explicit File(const std::string& bytes) : at(new std::byte[bytes.size()]) {
    std::memcpy(at.get(), bytes.data(), bytes.size());
  }
  std::optional<Program> read(const char*& why) const {
    return read_program(*reinterpret_cast<const axlf*>(at.get()), why);
  }

  std::unique_ptr<std::byte[]> at;
};

const std::string kBits = "no bits of note";

std::string sound_file() {
  return xclbin_bytes(hls::kImages[0], 2, kBits);
}

TEST_CASE("a card reads in an xclbin what its maker wrote", "[fpga][card]") {
  const char* why = nullptr;
  const File file(sound_file());
  const std::optional<Program> program = file.read(why);

  REQUIRE(program);
  CHECK(program->units == std::vector<std::string>{"decode_jpeg:decode_jpeg_1", "decode_jpeg:decode_jpeg_2"});
  CHECK(program->banks.size() == 4);
  CHECK(program->banks[1] == Bank{std::uint64_t{16} << 30, std::uint64_t{16} << 30});
  CHECK(program->banks[2].bytes == 0);
  CHECK(std::string(reinterpret_cast<const char*>(program->bitstream.data()), program->bitstream.size()) == kBits);
}

TEST_CASE("an xclbin that says anything is read within its bytes", "[fpga][card]") {
  const std::string sound = sound_file();
  std::mt19937 random(7);
  constexpr std::size_t kLength = offsetof(axlf, m_header.m_length);  // what XRT read; nobody else knows it
  int refused = 0, taken = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = sound;
    for (int change = 0; change < 4; ++change) {
      const std::size_t at = random() % sound.size();
      if (at < kLength || at >= kLength + 8) bytes[at] = static_cast<char>(random() % 3 == 0 ? 0xff : random());
    }
    const char* why = nullptr;
    const File file(bytes);
    const std::optional<Program> program = file.read(why);
    ++(program ? taken : refused);
    if (!program) CHECK(why != nullptr);
    if (program) CHECK(program->units.size() <= kMostUnits);
  }
  CHECK(refused > 100);
  CHECK(taken > 100);
}

}  // namespace
}  // namespace millrace::card
