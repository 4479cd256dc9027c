// Our inflating against zlib's: the same bytes of every stream that an encoder makes, and never a stream that zlib does
// not take.
#include <zlib.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/png/inflate.h"
#include "tests/support/pictures/png_file.h"

namespace millrace::kernels::png {
namespace {

using namespace std::string_literals;

// By zlib, without a look at the checksum; nullopt: it does not take the stream.
std::optional<std::string> by_zlib(std::string stream) {
  stream += "1234";  // what stands for a checksum
  z_stream z{};
  REQUIRE(inflateInit(&z) == Z_OK);
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&z, inflateEnd);
  inflateValidate(&z, 0);
  z.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(stream.data()));
  z.avail_in = static_cast<uInt>(stream.size());
  std::string out;
  std::vector<char> part(70000);
  while (true) {
    z.next_out = reinterpret_cast<Bytef*>(part.data());
    z.avail_out = static_cast<uInt>(part.size());
    const int status = inflate(&z, Z_NO_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END) return std::nullopt;
    out.append(part.data(), part.size() - z.avail_out);
    if (status == Z_STREAM_END) return out;
    if (out.size() > std::size_t{20} << 20) return std::nullopt;
  }
}

struct Portions {
  std::size_t in;   // fed at a time, kMeal at least
  std::size_t out;  // taken at a time
};

struct Inflated {
  std::string bytes;
  std::size_t taken;  // of the stream
};

// nullopt: odd. Every byte beyond what may be read or written is out of the allocation, for sanitizers to see.
std::optional<Inflated> by_us(const std::string& stream, Target target, Portions portions) {
  Inflater inflater(target);
  constexpr std::size_t kBefore = 8;
  std::vector<std::uint8_t> window(Inflater::kHistory + portions.out + kInflateOutputSlack);
  InflateOutput out{window.data(), window.data(), nullptr};
  std::size_t at = 0;  // of the stream: what in.next is
  std::size_t fed = std::min(portions.in, stream.size());
  Inflated result;
  while (true) {
    const bool is_last = fed == stream.size();
    std::vector<std::uint8_t> input;
    for (std::size_t i = at; i < fed + kBefore + kInflateInputSlack; ++i) {
      const bool is_there = i >= kBefore && i - kBefore < fed;
      input.push_back(is_there ? static_cast<std::uint8_t>(stream[i - kBefore]) : 0xFF);
    }
    const std::uint8_t* const begin = input.data() + kBefore;
    InflateInput in{begin, begin + (static_cast<std::ptrdiff_t>(fed) - static_cast<std::ptrdiff_t>(at)), is_last};
    out.end = out.next + std::min(portions.out, static_cast<std::size_t>(window.data() + window.size() -
                                                                         kInflateOutputSlack - out.next));
    const std::uint8_t* const before = out.next;

    const InflateStatus status = inflater.run(in, out);

    REQUIRE(out.next <= out.end + kInflateOutputSlack);
    result.bytes.append(static_cast<const std::uint8_t*>(before), static_cast<const std::uint8_t*>(out.next));
    at += static_cast<std::size_t>(in.next - begin);
    if (status == InflateStatus::kOdd) return std::nullopt;
    result.taken = at;
    if (status == InflateStatus::kEnd) return result;
    if (status == InflateStatus::kHungry) fed = std::min(at + portions.in, stream.size());
    if (static_cast<std::size_t>(out.next - window.data()) < Inflater::kHistory) continue;
    std::copy(out.next - Inflater::kHistory, out.next, window.data());
    out.next = window.data() + Inflater::kHistory;
  }
}

std::string compressed(const std::string& data, int level, int strategy, int memory) {
  z_stream z{};
  REQUIRE(deflateInit2(&z, level, Z_DEFLATED, 15, memory, strategy) == Z_OK);
  std::string stream(deflateBound(&z, static_cast<uLong>(data.size())) + 100, '\0');
  z.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(data.data()));
  z.avail_in = static_cast<uInt>(data.size());
  z.next_out = reinterpret_cast<Bytef*>(stream.data());
  z.avail_out = static_cast<uInt>(stream.size());
  REQUIRE(deflate(&z, Z_FINISH) == Z_STREAM_END);
  stream.resize(z.total_out);
  deflateEnd(&z);
  return stream;
}

// Bytes as filters leave them, noise, repetitions of every period, nothing at all.
std::vector<std::string> data_of_all_kinds() {
  std::mt19937 random(1);
  std::vector<std::string> all = {"", "a", std::string(300000, '\0')};
  const auto made = [&](std::size_t size, auto byte) {
    std::string data;
    for (std::size_t i = 0; i < size; ++i) data += static_cast<char>(byte(i, data));
    return data;
  };
  all.push_back(made(200000, [&](std::size_t, const std::string&) { return random(); }));
  all.push_back(made(200000, [&](std::size_t, const std::string&) {
    return static_cast<int>(std::normal_distribution<float>(0, 6)(random));
  }));
  all.push_back(made(100000, [&](std::size_t i, const std::string& data) {
    return i > 40000 && random() % 30 != 0 ? data[i - 32768] : static_cast<char>(random() % 50);
  }));
  for (const std::size_t period : {1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U, 9U, 11U, 13U, 15U, 16U, 17U, 31U, 300U}) {
    all.push_back(made(3000, [&](std::size_t i, const std::string& data) {
      return i >= period && random() % 40 != 0 ? data[i - period] : static_cast<char>(random());
    }));
  }
  return all;
}

// Bits as deflate writes them, the lowest first; a code's bits from its highest.
class BitString {
 public:
  BitString& number(unsigned value, unsigned bits) {
    for (unsigned i = 0; i < bits; ++i) bit(value >> i & 1);
    return *this;
  }
  BitString& code(const char* bits) {
    for (; *bits != '\0'; ++bits) bit(*bits == '1' ? 1 : 0);
    return *this;
  }
  // A zlib stream, with a checksum that nobody looks at.
  std::string stream() const { return "\x78\x9C"s + bytes_ + "1234"; }

 private:
  void bit(unsigned value) {
    if (count_++ % 8 == 0) bytes_ += '\0';
    if (value != 0)
      bytes_.back() = static_cast<char>(static_cast<unsigned char>(bytes_.back()) | 1U << (count_ - 1) % 8);
  }

  std::string bytes_;
  unsigned count_ = 0;
};

// The last block's header, whose codes have these lengths, each written in four bits (RFC 1951, 3.2.7).
BitString block_with(std::vector<unsigned> literals, const std::vector<unsigned>& distances) {
  BitString bits;
  bits.number(1, 1).number(2, 2);
  bits.number(static_cast<unsigned>(literals.size()) - 257, 5).number(static_cast<unsigned>(distances.size()) - 1, 5);
  bits.number(15, 4);
  // Lengths 0 to 15 have codes of four bits, in order; 16 to 18, which come first here, have none.
  for (unsigned i = 0; i < 19; ++i) bits.number(i < 3 ? 0 : 4, 3);
  literals.insert(literals.end(), distances.begin(), distances.end());
  for (const unsigned length : literals) {
    for (int i = 3; i >= 0; --i) bits.number(length >> i & 1, 1);
  }
  return bits;
}

std::vector<unsigned> literal_lengths(unsigned count) {
  std::vector<unsigned> lengths(count, 0);
  lengths['a'] = 1;
  lengths[256] = 2;
  lengths[257] = 2;  // three bytes
  return lengths;
}

}  // namespace

TEST_CASE("every stream that zlib makes inflates to its data, however it comes and goes", "[kernels][png]") {
  const Portions all_portions[] = {{1 << 20, 1 << 20}, {Inflater::kMeal, 100}, {1500, 70000}, {65536, 3000}};
  for (const std::string& data : data_of_all_kinds()) {
    for (const int level : {0, 1, 6, 9}) {
      for (const int strategy : {Z_DEFAULT_STRATEGY, Z_FILTERED, Z_HUFFMAN_ONLY, Z_RLE, Z_FIXED}) {
        const std::string stream = compressed(data, level, strategy, level == 1 ? 1 : 8);
        for (const Target target : available_targets()) {
          const Portions& portions = all_portions[(data.size() + static_cast<std::size_t>(level + strategy)) % 4];
          CAPTURE(data.size(), level, strategy, name_of(target), portions.in, portions.out);

          const auto inflated = by_us(stream, target, portions);

          REQUIRE(inflated);
          REQUIRE(inflated->bytes == data);
          REQUIRE(inflated->taken == stream.size() - 4);
        }
      }
    }
  }
}

TEST_CASE("what we inflate of a damaged stream, zlib inflates to the same", "[kernels][png]") {
  std::mt19937 random(2);
  int taken = 0, left = 0;
  for (const std::string& data : data_of_all_kinds()) {
    for (int round = 0; round < 60; ++round) {
      std::string stream =
          compressed(data.substr(0, 5000), static_cast<int>(random() % 10), static_cast<int>(random() % 5), 8);
      // Near the beginning, where the codes are, more often than not.
      const std::size_t reach = random() % 2 == 0 ? std::min<std::size_t>(stream.size(), 100) : stream.size();
      const std::size_t bit = random() % (reach * 8);
      stream[bit / 8] = static_cast<char>(static_cast<unsigned char>(stream[bit / 8]) ^ 1U << bit % 8);
      if (random() % 8 == 0) stream.resize(random() % stream.size());
      for (const Target target : available_targets()) {
        const auto ours = by_us(stream, target, {Inflater::kMeal, 2000});
        CAPTURE(data.size(), round, bit, name_of(target));
        ++(ours ? taken : left);
        if (ours) REQUIRE(by_zlib(stream) == ours->bytes);
      }
    }
  }
  REQUIRE((taken > 200 && left > 200));
}

TEST_CASE("codes that zlib does not take, or that no encoder makes, are odd", "[kernels][png]") {
  const auto is_odd = [](const std::string& stream) {
    const auto targets = available_targets();
    return std::none_of(targets.begin(), targets.end(), [&](Target target) {
      return by_us(stream, target, {4096, 4096});
    });
  };
  const auto good = block_with(literal_lengths(258), {1}).code("0").code("11").code("0").code("10");
  const auto unused_distance = block_with(literal_lengths(258), {1}).code("0").code("11").code("1").code("10");
  const auto no_distances = block_with(literal_lengths(258), {0}).code("0").code("10");
  const auto match_without_distances = block_with(literal_lengths(258), {0}).code("0").code("11").code("0").code("10");
  const auto too_many_literals = block_with(literal_lengths(287), {1}).code("0").code("10");
  const auto too_many_distances = block_with(literal_lengths(258), std::vector<unsigned>(31, 5)).code("0").code("10");
  const auto too_far = block_with(literal_lengths(258), {0, 1}).code("0").code("11").code("0").code("10");
  std::vector<unsigned> without_end = literal_lengths(258), incomplete = without_end, too_full = without_end;
  std::swap(without_end['b'], without_end[256]);
  incomplete[257] = 3;
  too_full['b'] = 3;

  REQUIRE(by_us(good.stream(), best_target(), {4096, 4096})->bytes == "aaaa");
  REQUIRE(by_us(no_distances.stream(), best_target(), {4096, 4096})->bytes == "a");
  for (const auto* const odd :
       {&unused_distance, &match_without_distances, &too_many_literals, &too_many_distances, &too_far})
    REQUIRE((is_odd(odd->stream()) && !by_zlib(odd->stream())));
  for (const auto& lengths : {without_end, incomplete, too_full})
    REQUIRE(is_odd(block_with(lengths, {1}).code("0").code("10").stream()));
}

TEST_CASE("a stream's header, its stored blocks and its end are looked at", "[kernels][png]") {
  const std::string stream = deflated("some text, some text, some text");
  const auto is_odd = [](const std::string& bytes) { return !by_us(bytes, best_target(), {4096, 4096}); };
  const std::string stored =
      "\x78\x01\x01\x03\x00\xFC\xFF"
      "abc"
      "1234"s;
  std::string wrong_inverse = stored;
  wrong_inverse[5] = '\xFD';

  REQUIRE(by_us(stored, best_target(), {4096, 4096})->bytes == "abc");
  REQUIRE(by_us(stored, best_target(), {4096, 4096})->taken == stored.size() - 4);
  REQUIRE(is_odd(wrong_inverse));
  REQUIRE(is_odd("\x78\x9D" + stream.substr(2)));  // a check that does not hold
  REQUIRE(is_odd("\x79\x9B" + stream.substr(2)));  // another method
  REQUIRE(is_odd("\x88\x1C" + stream.substr(2)));  // a window of 64 KiB
  REQUIRE(is_odd("\x78\xBB" + stream.substr(2)));  // with a dictionary
  for (std::size_t size = 0; size < stream.size() - 4; ++size) REQUIRE(is_odd(stream.substr(0, size)));
  REQUIRE(!is_odd(stream.substr(0, stream.size() - 4)));
}

}  // namespace millrace::kernels::png
