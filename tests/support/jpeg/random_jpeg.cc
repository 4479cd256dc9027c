#include "tests/support/jpeg/random_jpeg.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace millrace {
namespace {

int random_below(std::mt19937& random, int bound) {
  return static_cast<int>(random() % static_cast<unsigned>(bound));
}

bool one_in(std::mt19937& random, unsigned times) {
  return random() % times == 0;
}

constexpr int kMostMagnitude = 2900;  // of a block's dequantised coefficients: no image of 8-bit samples has more
constexpr int kMostLevel = 1100;      // of its DC coefficient

enum class CodeChoice { kDefault, kOptimal, kRandom };

// One drawing: the stream so far, and what its blocks are like.
class Drawing {
 public:
  Drawing(const JpegDraw& draw, std::mt19937& random) : draw_(draw), random_(random) {}

  JpegStream make() {
    codes_ = static_cast<CodeChoice>(random_below(random_, 3));
    choose_size();
    choose_components();
    choose_style();
    choose_quant();
    draw_blocks();
    choose_codes();
    return std::move(stream_);
  }

 private:
  bool is_any() const { return draw_.kind == JpegDraw::Kind::kAny; }
  bool is_wild() const { return draw_.range == JpegDraw::Range::kWild; }

  void choose_size() {
    stream_.width = draw_.width > 0 ? draw_.width : 1 + random_below(random_, one_in(random_, 3) ? 20 : 90);
    stream_.height = draw_.height > 0 ? draw_.height : 1 + random_below(random_, one_in(random_, 3) ? 20 : 70);
  }

  void choose_components() {
    static constexpr int kCounts[] = {1, 3, 3, 3, 3, 4};
    const int count = draw_.components > 0 ? draw_.components : kCounts[random_below(random_, is_any() ? 6 : 5)];
    const int tables = 1 + random_below(random_, 4);
    for (int i = 0; i < count; ++i) {
      JpegComponent component{.id = static_cast<std::uint8_t>(i + 1)};
      component.quant = random_below(random_, tables);
      component.dc = random_below(random_, tables);
      component.ac = random_below(random_, tables);
      stream_.components.push_back(component);
    }
    choose_factors();
    choose_restarts();
  }

  // Of a few MCUs, a row's or many. In a grey image with a vertical factor they are libjpeg's own affair.
  void choose_restarts() {
    stream_.restart_interval = draw_.restart_interval;
    if (draw_.restart_interval >= 0) return;
    const int across = 8 * stream_.components[0].h, row = (stream_.width + across - 1) / across;
    const int intervals[] = {1 + random_below(random_, 4), row, 1 + random_below(random_, 100)};
    stream_.restart_interval = one_in(random_, is_any() ? 2 : 3) ? intervals[random_below(random_, 3)] : 0;
    const bool restarts = stream_.restart_interval > 0;
    if (!is_any() && restarts && stream_.components.size() == 1) stream_.components[0].v = 1;
  }

  void choose_factors() {
    auto& components = stream_.components;
    const int most = is_any() && one_in(random_, 2) ? 4 : 2;
    components[0].h = draw_.h > 0 ? draw_.h : 1 + random_below(random_, most);
    components[0].v = draw_.v > 0 ? draw_.v : 1 + random_below(random_, most);
    if (is_any() && one_in(random_, 2)) {
      for (std::size_t i = 1; i < components.size(); ++i) {
        components[i].h = 1 + random_below(random_, 2);
        components[i].v = 1 + random_below(random_, 2);
      }
    }
    while (components.size() > 1 && blocks_in_mcu(stream_) > 10) {  // T.81 B.2.3
      JpegComponent& component = components[random_() % components.size()];
      component.h = 1 + (component.h - 1) / 2;
      component.v = 1 + (component.v - 1) / 2;
    }
  }

  void choose_style() {
    JpegStyle& style = stream_.style;
    style.seed = static_cast<std::uint32_t>(random_());
    style.needless_runs = one_in(random_, 3);
    style.odd_ends = codes_ != CodeChoice::kDefault && one_in(random_, 4);
    style.jfif = !one_in(random_, 3);
    if (one_in(random_, 4)) style.adobe_transform = stream_.components.size() == 4 ? 2 * random_below(random_, 2) : 1;
    if (is_any() && one_in(random_, 4)) style.fill_bytes = 1 + random_below(random_, 3);
    style.extended = one_in(random_, 4);
    style.joined_tables = one_in(random_, 2);
    style.padding = static_cast<std::uint8_t>(!one_in(random_, 4));
  }

  void choose_quant() {
    for (const JpegComponent& component : stream_.components) {
      auto& quant = stream_.quant[static_cast<std::size_t>(component.quant)];
      if (quant) continue;
      quant.emplace();
      static constexpr int kMost[] = {1, 8, 60, 255, 4000, 65535};
      const int most = kMost[random_below(random_, 6)];
      quant->wide = most > 255 || one_in(random_, 5);
      for (auto& value : quant->values) value = static_cast<std::uint16_t>(1 + random_below(random_, most));
    }
  }

  void draw_blocks() {
    const auto mcu_blocks = static_cast<std::size_t>(blocks_in_mcu(stream_));
    const std::size_t mcus = mcu_count(stream_);
    std::vector<std::size_t> component_of;
    for (std::size_t i = 0; i < stream_.components.size(); ++i) {
      const JpegComponent& component = stream_.components[i];
      const bool alone = stream_.components.size() == 1;
      component_of.insert(component_of.end(), static_cast<std::size_t>(alone ? 1 : component.h * component.v), i);
    }
    density_ = draw_.density >= 0   ? draw_.density
               : one_in(random_, 5) ? 1000
                                    : random_below(random_, one_in(random_, 2) ? 60 : 700);
    std::vector<int> levels(stream_.components.size());
    const auto interval = static_cast<std::size_t>(stream_.restart_interval);
    stream_.blocks.reserve(mcus * mcu_blocks);
    for (std::size_t mcu = 0; mcu < mcus; ++mcu) {
      if (interval > 0 && mcu % interval == 0) std::fill(levels.begin(), levels.end(), 0);
      for (const std::size_t component : component_of)
        stream_.blocks.push_back(draw_block(stream_.components[component], levels[component]));
    }
  }

  JpegBlock draw_block(const JpegComponent& component, int& level) {
    const JpegQuant& quant = *stream_.quant[static_cast<std::size_t>(component.quant)];
    JpegBlock block{};
    int room = kMostMagnitude;
    block[0] = static_cast<std::int16_t>(draw_difference(quant.values[0], level, room));
    if (one_in(random_, 6)) return block;  // DC alone
    if (one_in(random_, 12)) {             // a chain of runs to a single coefficient
      draw_coefficient(block, static_cast<std::size_t>(63 - random_below(random_, 48)), quant, room);
      return block;
    }
    const int density = one_in(random_, 40) ? 1000 : density_;
    for (std::size_t i = 1; i < block.size(); ++i) {
      if (random_below(random_, 1000) < density) draw_coefficient(block, i, quant, room);
    }
    return block;
  }

  // Takes from `room` what a coefficient uses up.
  int draw_difference(int factor, int& level, int& room) {
    if (is_wild()) return draw_value(codes_ == CodeChoice::kDefault ? 11 : 15);
    const int most = std::min(kMostLevel / factor, 1023);
    const int next = one_in(random_, 4)   ? level
                     : one_in(random_, 8) ? (one_in(random_, 2) ? most : -most)
                                          : random_below(random_, 2 * most + 1) - most;
    const int difference = next - level;
    level = next;
    room -= std::abs(next) * factor;
    return difference;
  }

  void draw_coefficient(JpegBlock& block, std::size_t at, const JpegQuant& quant, int& room) {
    int value = draw_value(codes_ == CodeChoice::kDefault ? 10 : 15);
    if (!is_wild()) {
      const int most = room / quant.values[at];
      if (most == 0) return;
      if (std::abs(value) > most) value = value % (most + 1);
      room -= std::abs(value) * quant.values[at];
    }
    block[at] = static_cast<std::int16_t>(value);
  }

  // Each size as likely as the next, small ones likelier still, and the ends of their ranges.
  int draw_value(int most_size) {
    const int size = one_in(random_, 2) ? random_below(random_, 4) : random_below(random_, most_size + 1);
    if (size == 0) return 0;
    const int least = 1 << (size - 1), most = (1 << size) - 1;
    const int magnitude = one_in(random_, 6) ? most : least + random_below(random_, least);
    return one_in(random_, 2) ? magnitude : -magnitude;
  }

  void choose_codes() {
    const JpegHistogram histogram = count_symbols(stream_);
    for (const JpegComponent& component : stream_.components) {
      choose_code(stream_.dc[static_cast<std::size_t>(component.dc)],
                  histogram.dc[static_cast<std::size_t>(component.dc)], default_dc_code(), 15);
      choose_code(stream_.ac[static_cast<std::size_t>(component.ac)],
                  histogram.ac[static_cast<std::size_t>(component.ac)], default_ac_code(), 255);
    }
  }

  void choose_code(std::optional<JpegCode>& code, const JpegFrequencies& frequencies, const JpegCode& usual,
                   int most_symbol) {
    if (code) return;
    if (codes_ == CodeChoice::kDefault)
      code = usual;
    else
      code =
          codes_ == CodeChoice::kOptimal ? optimal_code(frequencies) : random_code(frequencies, most_symbol, random_);
  }

  const JpegDraw& draw_;
  std::mt19937& random_;
  JpegStream stream_;
  CodeChoice codes_ = CodeChoice::kDefault;
  int density_ = 0;
};

using Bytes = std::vector<std::byte>;

void insert(Bytes& bytes, std::size_t at, const Bytes& what) {
  bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), what.begin(), what.end());
}

void overwrite(Bytes& bytes, std::size_t at, std::size_t count, std::size_t scan, std::mt19937& random) {
  const auto kind = random() % 3;
  const std::size_t from = scan + random() % (at - scan + 1);
  for (std::size_t i = 0; i < count && at + i < bytes.size(); ++i)
    bytes[at + i] = kind == 0 ? std::byte{0xFF} : kind == 1 ? std::byte{0} : bytes[from + i];
}

}  // namespace

JpegStream draw_jpeg(const JpegDraw& draw, std::mt19937& random) {
  return Drawing(draw, random).make();
}

std::vector<std::byte> damage(const JpegFile& file, JpegDamage kind, std::mt19937& random) {
  Bytes bytes = file.bytes;
  const std::size_t length = file.end - file.scan;
  const std::size_t at =
      file.scan + (one_in(random, 4) ? length - random() % std::min<std::size_t>(length, 12) : random() % length);
  switch (kind) {
    case JpegDamage::kCut:
      bytes.resize(at);
      break;
    case JpegDamage::kCutWithEnd:
      bytes.resize(at);
      bytes.insert(bytes.end(), {std::byte{0xFF}, std::byte{0xD9}});
      break;
    case JpegDamage::kFlip:
      for (auto flips = 1 + random() % 4; flips > 0; --flips)
        bytes[file.scan + random() % length] ^= std::byte(1U << random() % 8);
      break;
    case JpegDamage::kFlipAnywhere:
      for (auto flips = 1 + random() % 3; flips > 0; --flips)
        bytes[random() % (one_in(random, 2) ? file.scan : bytes.size())] ^= std::byte(1U << random() % 8);
      break;
    case JpegDamage::kRestart:
      insert(bytes, at, {std::byte{0xFF}, std::byte(0xD0 + random() % 8)});
      break;
    case JpegDamage::kExtra:
      insert(bytes, file.end, Bytes(1 + random() % 40, std::byte(random() % 255)));
      break;
    case JpegDamage::kLack: {
      const std::size_t count = 1 + random() % std::min<std::size_t>(file.end - at + 1, 20);
      const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(at);
      bytes.erase(first, first + static_cast<std::ptrdiff_t>(std::min(count, file.end - at)));
      break;
    }
    case JpegDamage::kOverwrite:
      overwrite(bytes, at, 1 + random() % 40, file.scan, random);
      break;
  }
  return bytes;
}

}  // namespace millrace
