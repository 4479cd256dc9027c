#include "tests/support/jpeg/jpeg_stream.h"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <random>
#include <stdexcept>

namespace millrace {
namespace {

constexpr int kBlock = 8;

// A code's bits, or a value's.
struct Token {
  std::uint8_t symbol = 0;
  int size = 0;  // bits of the value behind it
  std::uint32_t value = 0;
};

// T.81 F.1.2.1: negative values are stored less one.
Token token_of(int run, int value) {
  int size = 0;
  while (std::abs(value) >> size != 0) ++size;
  if (size > 15) throw std::runtime_error("test stream: a coefficient beyond 15 bits");
  const int bits = value < 0 ? value + (1 << size) - 1 : value;
  return {static_cast<std::uint8_t>(run << 4 | size), size, static_cast<std::uint32_t>(bits)};
}

class Coder {
 public:
  explicit Coder(const JpegStyle& style) : style_(style), random_(style.seed) {}

  // One block's tokens: DC first.
  const std::vector<Token>& code(const JpegBlock& block) {
    tokens_.clear();
    tokens_.push_back(token_of(0, block[0]));
    int zeros = 0;
    for (std::size_t i = 1; i < block.size(); ++i) {
      if (block[i] == 0) {
        ++zeros;
        continue;
      }
      for (; zeros > 15; zeros -= 16) tokens_.push_back({0xF0});
      tokens_.push_back(token_of(zeros, block[i]));
      zeros = 0;
    }
    end_block(zeros);
    return tokens_;
  }

 private:
  void end_block(int zeros) {
    if (style_.needless_runs && random_() % 2 == 0) {
      for (int runs = static_cast<int>(random_() % 5); runs > 0 && zeros > 15; --runs, zeros -= 16)
        tokens_.push_back({0xF0});
    }
    if (zeros == 0) return;
    const auto run = style_.odd_ends ? random_() % 15 : 0;
    tokens_.push_back({static_cast<std::uint8_t>(run << 4)});
  }

  const JpegStyle& style_;
  std::minstd_rand random_;
  std::vector<Token> tokens_;
};

// T.81 annex C.
struct Codes {
  explicit Codes(const std::optional<JpegCode>& table) {
    if (!table) return;
    std::uint32_t code = 0;
    std::size_t at = 0;
    for (int length = 1; length <= 16; ++length, code <<= 1) {
      for (int i = 0; i < table->counts[static_cast<std::size_t>(length - 1)]; ++i, ++at, ++code) {
        lengths[table->symbols[at]] = length;
        codes[table->symbols[at]] = code;
      }
    }
  }
  std::array<int, 256> lengths{};
  std::array<std::uint32_t, 256> codes{};
};

class Writer {
 public:
  explicit Writer(int fill_bytes) : fill_bytes_(fill_bytes) {}

  std::size_t size() const { return bytes_.size(); }
  std::vector<std::byte> take() { return std::move(bytes_); }

  void byte(int value) { bytes_.push_back(static_cast<std::byte>(value)); }
  void word(int value) {
    byte(value >> 8);
    byte(value & 255);
  }
  void marker(int code) {
    for (int i = 0; i < fill_bytes_ && !bytes_.empty(); ++i) byte(0xFF);
    byte(0xFF);
    byte(code);
  }
  void segment(int code, const std::vector<int>& body) {
    marker(code);
    word(static_cast<int>(body.size()) + 2);
    for (const int value : body) byte(value);
  }

  void bits(std::uint32_t value, int count) {
    for (int i = count - 1; i >= 0; --i) {
      current_ = current_ << 1 | (value >> i & 1);
      if (++filled_ < 8) continue;
      byte(current_);
      if (current_ == 0xFF) byte(0);
      current_ = filled_ = 0;
    }
  }
  // How many bits that took.
  int pad(std::uint32_t bit) {
    const int count = (8 - filled_) % 8;
    for (int i = 0; i < count; ++i) bits(bit, 1);
    return count;
  }

 private:
  std::vector<std::byte> bytes_;
  int fill_bytes_;
  int current_ = 0, filled_ = 0;
};

void append(std::vector<int>& body, std::initializer_list<int> values) {
  body.insert(body.end(), values);
}

// Hands the bodies of one kind's tables over, alone or joined.
void write_tables(Writer& writer, int marker, const std::vector<std::vector<int>>& tables, bool joined) {
  std::vector<int> all;
  for (const auto& table : tables) {
    if (!joined) writer.segment(marker, table);
    all.insert(all.end(), table.begin(), table.end());
  }
  if (joined && !all.empty()) writer.segment(marker, all);
}

std::vector<std::vector<int>> quant_tables(const JpegStream& stream) {
  std::vector<std::vector<int>> tables;
  for (int i = 0; i < 4; ++i) {
    const auto& quant = stream.quant[static_cast<std::size_t>(i)];
    if (!quant) continue;
    std::vector<int> table = {(quant->wide ? 16 : 0) + i};
    for (const int value : quant->values) {
      if (quant->wide) table.push_back(value >> 8);
      table.push_back(value & 255);
    }
    tables.push_back(table);
  }
  return tables;
}

std::vector<std::vector<int>> huffman_tables(const JpegStream& stream) {
  std::vector<std::vector<int>> tables;
  for (int i = 0; i < 8; ++i) {
    const auto& code = (i < 4 ? stream.dc : stream.ac)[static_cast<std::size_t>(i % 4)];
    if (!code) continue;
    std::vector<int> table = {(i < 4 ? 0 : 16) + i % 4};
    table.insert(table.end(), code->counts.begin(), code->counts.end());
    table.insert(table.end(), code->symbols.begin(), code->symbols.end());
    tables.push_back(table);
  }
  return tables;
}

void write_header(Writer& writer, const JpegStream& stream) {
  const JpegStyle& style = stream.style;
  writer.marker(0xD8);
  if (style.jfif) writer.segment(0xE0, {'J', 'F', 'I', 'F', 0, 1, 1, 0, 0, 1, 0, 1, 0, 0});
  if (style.adobe_transform >= 0)
    writer.segment(0xEE, {'A', 'd', 'o', 'b', 'e', 0, 100, 0, 0, 0, 0, style.adobe_transform});
  write_tables(writer, 0xDB, quant_tables(stream), style.joined_tables);
  std::vector<int> frame = {8, stream.height >> 8, stream.height & 255, stream.width >> 8, stream.width & 255};
  frame.push_back(static_cast<int>(stream.components.size()));
  for (const JpegComponent& component : stream.components)
    append(frame, {component.id, component.h << 4 | component.v, component.quant});
  writer.segment(style.extended ? 0xC1 : 0xC0, frame);
  write_tables(writer, 0xC4, huffman_tables(stream), style.joined_tables);
  if (stream.restart_interval > 0) writer.segment(0xDD, {stream.restart_interval >> 8, stream.restart_interval & 255});
  std::vector<int> scan = {static_cast<int>(stream.components.size())};
  for (const JpegComponent& component : stream.components)
    append(scan, {component.id, component.dc << 4 | component.ac});
  append(scan, {0, 63, 0});
  writer.segment(0xDA, scan);
}

// The component of each block of an MCU.
std::vector<const JpegComponent*> mcu_of(const JpegStream& stream) {
  std::vector<const JpegComponent*> mcu;
  const bool alone = stream.components.size() == 1;
  for (const JpegComponent& component : stream.components)
    mcu.insert(mcu.end(), static_cast<std::size_t>(alone ? 1 : component.h * component.v), &component);
  return mcu;
}

// `visit` gets each block's component and tokens, `restart` the number of each restart.
template <typename Visit, typename Restart>
void for_each_block(const JpegStream& stream, Visit visit, Restart restart) {
  const auto mcu = mcu_of(stream);
  if (stream.blocks.size() != mcu.size() * mcu_count(stream)) throw std::runtime_error("test stream: number of blocks");
  Coder coder(stream.style);
  const auto interval = static_cast<std::size_t>(stream.restart_interval) * mcu.size();
  for (std::size_t i = 0; i < stream.blocks.size(); ++i) {
    if (interval > 0 && i > 0 && i % interval == 0) restart(static_cast<int>(i / interval - 1));
    visit(*mcu[i % mcu.size()], coder.code(stream.blocks[i]));
  }
}

std::uint32_t checked(const Codes& codes, std::uint8_t symbol) {
  if (codes.lengths[symbol] == 0) throw std::runtime_error("test stream: a symbol without a code");
  return codes.codes[symbol];
}

int divide_up(int value, int by) {
  return (value + by - 1) / by;
}

}  // namespace

int blocks_in_mcu(const JpegStream& stream) {
  return static_cast<int>(mcu_of(stream).size());
}

std::size_t mcu_count(const JpegStream& stream) {
  int h = 1, v = 1;
  if (stream.components.size() > 1) {
    for (const JpegComponent& component : stream.components) {
      h = std::max(h, component.h);
      v = std::max(v, component.v);
    }
  }
  return static_cast<std::size_t>(divide_up(stream.width, kBlock * h)) *
         static_cast<std::size_t>(divide_up(stream.height, kBlock * v));
}

JpegFile write_jpeg(const JpegStream& stream) {
  Writer writer(stream.style.fill_bytes);
  write_header(writer, stream);
  std::vector<Codes> dc(stream.dc.begin(), stream.dc.end()), ac(stream.ac.begin(), stream.ac.end());
  JpegFile file;
  file.scan = writer.size();
  for_each_block(
      stream,
      [&](const JpegComponent& component, const std::vector<Token>& tokens) {
        const Codes* codes = &dc[static_cast<std::size_t>(component.dc)];
        for (const Token& token : tokens) {
          writer.bits(checked(*codes, token.symbol), codes->lengths[token.symbol]);
          writer.bits(token.value, token.size);
          codes = &ac[static_cast<std::size_t>(component.ac)];
        }
      },
      [&](int restart) {
        writer.pad(stream.style.padding);
        writer.marker(0xD0 + restart % 8);
      });
  file.padding_bits = writer.pad(stream.style.padding);
  file.end = writer.size();
  writer.marker(0xD9);
  file.bytes = writer.take();
  return file;
}

JpegHistogram count_symbols(const JpegStream& stream) {
  JpegHistogram result;
  for_each_block(
      stream,
      [&](const JpegComponent& component, const std::vector<Token>& tokens) {
        ++result.dc[static_cast<std::size_t>(component.dc)][tokens[0].symbol];
        for (std::size_t i = 1; i < tokens.size(); ++i)
          ++result.ac[static_cast<std::size_t>(component.ac)][tokens[i].symbol];
      },
      [](int) {});
  return result;
}

}  // namespace millrace
