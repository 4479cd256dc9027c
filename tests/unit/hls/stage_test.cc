// The stages of the FPGA decoder one by one, and the FIFOs between them: their depths suffice, and what goes wrong in
// one is noted.
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <random>

#include "hls/base/fifo.h"
#include "hls/decoder/engine.h"
#include "hls/decoder/jpeg/jpeg_slot.h"
#include "hls/host/jpeg_tables.h"
#include "kernels/cpu/jpeg/dct/inverse_dct.h"
#include "kernels/jpeg/unstuff.h"
#include "tests/support/jpeg/random_jpeg.h"
#include "tests/support/pictures/test_images.h"
#include "tests/unit/hls/rig.h"

namespace millrace::hls {
namespace {

TEST_CASE("a FIFO gives back what was written, in turn, and knows how full it ever was", "[hls][fifo]") {
  Fifo<int, 4> fifo;
  REQUIRE(fifo.empty());
  for (int i = 0; i < 10; ++i) {
    fifo.write(2 * i);
    fifo.write(2 * i + 1);
    REQUIRE(fifo.read() == 2 * i);
    REQUIRE(fifo.read() == 2 * i + 1);
  }
  REQUIRE(fifo.high_water() == 2);
  for (int i = 0; i < 4; ++i) fifo.write(i);
  REQUIRE(fifo.full());
  REQUIRE(fifo.high_water() == 4);
  REQUIRE(fifo.overflows() == 0);
  REQUIRE(fifo.underflows() == 0);
}

TEST_CASE("a FIFO notes writes without room and reads of nothing, and goes on", "[hls][fifo]") {
  Fifo<int, 2> fifo;
  for (int i = 1; i <= 3; ++i) fifo.write(i);
  REQUIRE(fifo.overflows() == 1);
  REQUIRE(fifo.read() == 1);
  REQUIRE(fifo.read() == 2);
  REQUIRE(fifo.read() == 0);
  REQUIRE(fifo.underflows() == 1);
  fifo.write(7);
  REQUIRE(fifo.read() == 7);
}

TEST_CASE("memory beyond a buffer reads as zeros and is not written", "[hls][memory]") {
  GuardedMemory memory(100, 0x11);
  const ReadPort in{memory.words(), memory.size()};
  REQUIRE(in.read(0).part[0] == 0x1111111111111111U);
  REQUIRE(in.read(1).part[0] == 0);
  const WritePort out{memory.words(), memory.size()};
  Burst word;
  for (auto& part : word.part) part = 0x2222222222222222U;
  out.write(1, word, 0, 64);
  REQUIRE(memory.bytes()[64] == std::byte{0x11});
  out.write(1, word, 3, 33);
  REQUIRE(memory.bytes()[66] == std::byte{0x11});
  REQUIRE(memory.bytes()[67] == std::byte{0x22});
  REQUIRE(memory.bytes()[99] == std::byte{0x22});
  out.write(0xffffffff, word, 0, 64);
  REQUIRE(memory.is_intact());
}

TEST_CASE("an image that a slot's memories have no room for is not made", "[hls][check]") {
  GuardedMemory commands(std::size_t{4} << 20);
  Descriptor image{};
  image.source_bytes = 4096 * 4096;
  image.columns = image.rows = kBatchUnits + 1;
  image.width = image.crop_width = image.height = image.crop_height = 4096;
  image.column_taps = image.row_taps = 16;
  image.out_height = 8;
  image.kind = static_cast<std::uint8_t>(Source::kRows);
  const BatchHead batch{1, true, 3, 1, 0, {0, 1, 2}};
  const auto reason = [&](int out_width, int taps, int rows_first) {
    image.out_width = static_cast<std::uint16_t>(out_width);
    image.column_taps = static_cast<std::uint8_t>(taps);
    image.rows_first = static_cast<std::uint8_t>(rows_first);
    image.tensor_bytes = static_cast<std::uint32_t>(out_width) * 8 * 3;
    std::memcpy(commands.bytes().data() + sizeof(Batch), &image, sizeof image);
    Job job;
    return read_job({{commands.words(), commands.size()}, {nullptr, 1 << 25}, 1 << 20}, batch, 0, Source::kRows, job);
  };
  REQUIRE(reason(4096, 7, 0) == Reason::kDone);
  REQUIRE(reason(4096, 8, 0) == Reason::kNotHere);
  REQUIRE(reason(504, 64, 0) == Reason::kDone);
  REQUIRE(reason(505, 64, 0) == Reason::kNotHere);
  REQUIRE(reason(100, 8, 1) == Reason::kDone);
  image.row_taps = 17;
  REQUIRE(reason(100, 8, 0) == Reason::kDone);
  REQUIRE(reason(100, 8, 1) == Reason::kNotHere);
}

// --- scan ---

struct ScanStages {
  BurstFifo words;
  PieceFifo pieces;
  SourceLoader loader;
  ScanUnstuffer unstuffer;
};

// The data and the markers of a source: a marker is an entry beyond 255, the end without one is 256.
std::vector<int> unstuffed(std::span<const std::uint8_t> source, std::uint32_t at) {
  GuardedMemory memory(at + source.size() + kReadAhead, 0xFF);
  std::memcpy(memory.bytes().data() + at, source.data(), source.size());
  auto stages = std::make_unique<ScanStages>();
  Job job{};
  job.image.source = at;
  job.image.source_bytes = static_cast<std::uint32_t>(source.size());
  stages->loader.start(job);
  stages->unstuffer.start(job);
  std::vector<int> all;
  for (bool ends = false; !ends;) {
    stages->loader.step({memory.words(), memory.size()}, stages->words);
    stages->unstuffer.step(stages->words, stages->pieces);
    REQUIRE_FALSE(stages->pieces.empty());
    const Piece piece = stages->pieces.read();
    for (int i = 0; i < piece.bytes; ++i) all.push_back(static_cast<int>(piece.data >> (24 - 8 * i) & 255));
    if (piece.bytes == 0) all.push_back(256 + piece.marker);
    ends = piece.bytes == 0 && !is_restart(piece.marker);
  }
  REQUIRE(stages->unstuffer.has_ended());
  REQUIRE(stages->pieces.empty());
  REQUIRE(stages->words.overflows() + stages->words.underflows() + stages->pieces.overflows() == 0);
  return all;
}

// By kernels/jpeg.
std::vector<int> unstuffed_by_reference(std::span<const std::uint8_t> source) {
  std::vector<int> all;
  for (;;) {
    std::vector<std::uint8_t> out(source.size() + kernels::jpeg::kUnstuffSlack);
    const auto part = kernels::jpeg::reference::unstuff(source, out.data());
    all.insert(all.end(), out.begin(), out.begin() + static_cast<std::ptrdiff_t>(part.size));
    all.push_back(256 + (part.marker < 0 ? 0 : part.marker));
    if (part.marker < 0 || !is_restart(static_cast<std::uint8_t>(part.marker))) return all;
    source = source.subspan(part.consumed + 2);
  }
}

TEST_CASE("scans are unstuffed as kernels/jpeg does it, up to the marker that ends them", "[hls][scan]") {
  std::mt19937 random(1);
  for (int round = 0; round < 400; ++round) {
    std::vector<std::uint8_t> source(1 + random() % 300);
    for (auto& byte : source) byte = static_cast<std::uint8_t>(random() % 4 == 0 ? 0xFF : random());
    for (std::size_t i = 0; i + 1 < source.size(); ++i) {
      if (source[i] == 0xFF && random() % 30 != 0)
        source[i + 1] = random() % 4 == 0 ? static_cast<std::uint8_t>(0xD0 + random() % 8) : std::uint8_t{0};
    }
    CAPTURE(round);

    REQUIRE(unstuffed(source, random() % 130) == unstuffed_by_reference(source));
  }
}

// --- entropy decoder ---

struct Decoded {
  ScanVerdict verdict;
  std::vector<JpegBlock> blocks;  // natural order, as libjpeg's
};

// A file's scan alone, with a watchdog of so many symbols; 0: as many as there can be.
Decoded decode_scan(const File& file, std::uint64_t symbols) {
  const auto header = kernels::jpeg::read_header(file_bytes(file), kernels::jpeg::Chroma::kQuarter).value();
  JpegTables tables{};
  REQUIRE(put_tables(header, tables) == "");
  Job job{};
  job.image.width = static_cast<std::uint16_t>(header.size.width);
  job.image.height = static_cast<std::uint16_t>(header.size.height);
  job.image.source_bytes = static_cast<std::uint32_t>(header.scan.size());
  job.components = tables.components;
  job.h = tables.h;
  job.v = tables.v;
  std::copy_n(tables.dc, 3, job.dc);
  std::copy_n(tables.ac, 3, job.ac);
  job.restart_interval = tables.restart_interval;
  put_mcus(job);
  GuardedMemory memory(header.scan.size() + kReadAhead);
  std::memcpy(memory.bytes().data(), header.scan.data(), header.scan.size());
  GuardedMemory commands(sizeof tables);
  std::memcpy(commands.bytes().data(), &tables, sizeof tables);

  auto stages = std::make_unique<ScanStages>();
  SetupFifo codes;
  TokenFifo tokens;
  VerdictFifo verdicts;
  TableFeed feed;
  HuffmanSlot huffman;
  feed.start({kHeadUnits + kQuantUnits, kCodes * kCodeUnits}, {0, 0});
  stages->loader.start(job);
  stages->unstuffer.start(job);
  huffman.start(job, symbols == 0 ? most_symbols(job) : symbols);
  Decoded decoded{};
  JpegBlock block{};
  while (verdicts.empty() || !tokens.empty()) {
    feed.step({commands.words(), commands.size()}, codes);
    stages->loader.step({memory.words(), memory.size()}, stages->words);
    stages->unstuffer.step(stages->words, stages->pieces);
    huffman.step(codes, stages->pieces, tokens, verdicts);
    while (!tokens.empty()) {
      const Token token = tokens.read();
      if (token.value != 0) block[token.at] = token.value;
      if (token.last == 0) continue;
      decoded.blocks.push_back(block);
      block = {};
    }
  }
  REQUIRE(tokens.overflows() + tokens.underflows() + codes.overflows() + stages->pieces.underflows() == 0);
  decoded.verdict = verdicts.read();
  REQUIRE(decoded.blocks.size() == mcus(job) * static_cast<std::uint32_t>(blocks_in_mcu(job)));
  return decoded;
}

TEST_CASE("the entropy decoder gives the blocks that were coded", "[hls][huffman]") {
  std::mt19937 random(2);
  for (int round = 0; round < 60; ++round) {
    JpegStream stream = draw_jpeg({.width = 8 + static_cast<int>(random() % 60), .height = 40}, random);
    const File file = write_jpeg(stream).bytes;
    if (!jpeg_size(file)) continue;
    CAPTURE(round);

    const Decoded decoded = decode_scan(file, 0);

    REQUIRE(decoded.verdict.reason == Reason::kDone);
    REQUIRE(decoded.verdict.blocks == decoded.blocks.size());
    // DC: levels here, differences there.
    int levels[3] = {};
    const std::size_t luma =
        stream.components.size() == 1 ? 1 : static_cast<std::size_t>(stream.components[0].h * stream.components[0].v);
    const std::size_t in_mcu = stream.components.size() == 1 ? 1 : luma + 2;
    const auto interval = static_cast<std::size_t>(stream.restart_interval) * in_mcu;
    REQUIRE(decoded.blocks.size() == stream.blocks.size());
    for (std::size_t i = 0; i < decoded.blocks.size(); ++i) {
      if (interval != 0 && i % interval == 0) levels[0] = levels[1] = levels[2] = 0;
      JpegBlock expected = stream.blocks[i];
      int& level = levels[i % in_mcu < luma ? 0 : i % in_mcu - luma + 1];
      level += expected[0];
      expected[0] = static_cast<std::int16_t>(level);
      REQUIRE(decoded.blocks[i] == expected);
    }
  }
}

TEST_CASE("the watchdog ends an image of too many symbols, and all of its blocks go on", "[hls][huffman]") {
  const File file = make_jpeg({.pixels = make_pixels(64, 48, 3, 1)});
  const std::uint32_t symbols = decode_scan(file, 0).verdict.symbols;
  REQUIRE(symbols > 1000);
  REQUIRE(decode_scan(file, symbols).verdict.reason == Reason::kDone);

  const Decoded decoded = decode_scan(file, symbols - 1);

  REQUIRE(decoded.verdict.reason == Reason::kTooLong);
  REQUIRE(decoded.verdict.symbols == symbols - 1);
}

// --- inverse DCT ---

TEST_CASE("dequantised blocks become the CPU's samples; those out of the ordinary are noted", "[hls][idct]") {
  std::mt19937 random(3);
  std::array<std::uint16_t, 64> quant{};
  for (auto& factor : quant) factor = static_cast<std::uint16_t>(1 + random() % 60);
  GuardedMemory tables(kQuantUnits * kUnit);
  std::memcpy(tables.bytes().data() + 2 * 64 * 2, quant.data(), sizeof quant);
  const auto cpu = kernels::jpeg::make_dequantiser(quant);
  int extremes = 0;
  for (int round = 0; round < 3000; ++round) {
    alignas(64) std::int16_t zigzag[64] = {};
    Job job{};
    job.components = job.h = job.v = 1;
    job.mcu_columns = job.mcu_rows = 1;
    job.quant[0] = 2;
    Dequantiser dequantiser;
    InverseDct inverse_dct;
    SetupFifo setup;
    TokenFifo tokens;
    ColumnFifo columns;
    SampleFifo samples;
    FlagFifo extreme;
    TableFeed feed;
    feed.start({0, kQuantUnits}, {0, 0});
    dequantiser.start(job);
    inverse_dct.start();
    for (int i = 0; i < 4; ++i) {  // the tables are two FIFOs full
      feed.step({tables.words(), tables.size()}, setup);
      dequantiser.step(setup, tokens, columns, extreme);
    }
    const int most = round % 10 == 0 ? 32767 : 2900 / static_cast<int>(1 + random() % 64);
    for (std::uint8_t at = 0; at < 64; ++at) {
      const int factor = quant[kNatural[at]], bound = std::max(1, std::min(32767, most / factor));
      if (random() % 3 != 0)
        zigzag[at] = static_cast<std::int16_t>(static_cast<int>(random() % (2 * bound + 1)) - bound);
      tokens.write({zigzag[at], at, static_cast<std::uint8_t>(at == 63)});
      if (tokens.full() || at == 63) dequantiser.step(setup, tokens, columns, extreme);
    }
    inverse_dct.step(columns, samples);
    dequantiser.step(setup, tokens, columns, extreme);
    const bool is_extreme = extreme.read() != 0;
    std::uint8_t ours[64], theirs[64];
    for (int row = 0; row < 8; ++row) {
      const SampleRow line = samples.read();
      std::memcpy(ours + 8 * row, &line, 8);
    }
    const kernels::jpeg::BlockJob block{zigzag, &cpu, theirs, 8};

    const bool is_ordinary = kernels::jpeg::scalar_inverse_dct().transform(&block, 1);

    CAPTURE(round);
    REQUIRE(is_extreme == !is_ordinary);
    extremes += is_extreme;
    if (is_ordinary) REQUIRE(std::equal(ours, ours + 64, theirs));
    if (!is_ordinary) REQUIRE(std::all_of(ours, ours + 64, [](int sample) { return sample == 128; }));
  }
  REQUIRE(extremes > 100);
  REQUIRE(extremes < 2000);
}

// Whether a block of one column, all factors 1, is out of the ordinary.
bool is_extreme(std::initializer_list<int> column) {
  GuardedMemory tables(kQuantUnits * kUnit);
  for (std::size_t i = 0; i < tables.bytes().size(); i += 2) tables.bytes()[i] = std::byte{1};
  Job job{};
  job.components = job.h = job.v = 1;
  job.mcu_columns = job.mcu_rows = 1;
  Dequantiser dequantiser;
  SetupFifo setup;
  TokenFifo tokens;
  ColumnFifo columns;
  FlagFifo extreme;
  TableFeed feed;
  feed.start({0, kQuantUnits}, {0, 0});
  dequantiser.start(job);
  std::uint8_t row = 0;
  for (const int value : column) {
    const auto at = static_cast<std::uint8_t>(std::find(kNatural, kNatural + 64, 8 * row++) - kNatural);
    tokens.write({static_cast<std::int16_t>(value), at, static_cast<std::uint8_t>(row == column.size())});
  }
  while (extreme.empty()) {
    feed.step({tables.words(), tables.size()}, setup);
    dequantiser.step(setup, tokens, columns, extreme);
    while (!columns.empty()) columns.read();
  }
  return extreme.read() != 0;
}

TEST_CASE("a column's magnitudes may add up to 2,944 and no more", "[hls][idct]") {
  REQUIRE_FALSE(is_extreme({2944}));
  REQUIRE_FALSE(is_extreme({-2944, 0}));
  REQUIRE(is_extreme({2945}));
  REQUIRE(is_extreme({-2945}));
  REQUIRE_FALSE(is_extreme({1000, -1000, 944}));
  REQUIRE(is_extreme({1000, -1000, 945}));
  REQUIRE(is_extreme({-32768, 0, 0, 1}));
}

// --- all of them ---

std::unique_ptr<Engine<JpegSlot>> stage_engine;

void run_engine(const Burst* commands, const Burst* encoded, Burst* tensors, Burst* completions, std::uint32_t a,
                std::uint32_t b, std::uint32_t c, std::uint32_t d, std::uint32_t phase) {
  stage_engine->run({{commands, a}, {encoded, b}, {tensors, c}, {completions, d}}, phase);
}

TEST_CASE("no FIFO of a decoder overflows or is read when empty, and all are used", "[hls][fifo]") {
  stage_engine = std::make_unique<Engine<JpegSlot>>();
  std::mt19937 random(5);
  HlsRunner runner({}, run_engine);
  std::vector<File> files;
  for (int i = 0; i < 40; ++i) {
    if (i % 4 == 0) {
      files.push_back(make_jpeg({.pixels = make_pixels(150, 120, 3, 4), .h_samp = 1 + i / 4 % 2, .v_samp = 1}));
      continue;
    }
    const JpegFile file = write_jpeg(draw_jpeg({.width = 90, .height = 70}, random));
    files.push_back(i % 4 == 1 ? file.bytes
                               : damage(file, static_cast<JpegDamage>(below(random, kJpegDamages)), random));
  }
  std::vector<HlsRequest> requests;
  for (const File& file : files) {
    const auto size = jpeg_size(file);
    if (size) requests.push_back(whole_tensor(file, kernels::whole(*size), {33, 29}));
  }

  runner.run(requests);

  for (int i = 0; i < kLanes * kSlots; ++i) {
    stage_engine->slot(i).each_fifo([&](const char* name, const auto& fifo) {
      CAPTURE(i, name);
      REQUIRE(fifo.overflows() == 0);
      REQUIRE(fifo.underflows() == 0);
      REQUIRE(fifo.high_water() > 0);
      REQUIRE(fifo.high_water() <= fifo.depth());
    });
  }
  stage_engine.reset();
}

// A slot whose stages never move.
struct StuckSlot {
  static constexpr Source kMakes = Source::kJpegScan;
  void start(const Job&, const Ports&) {}
  bool step(const Ports&) { return false; }
  bool is_over() const { return false; }
  Outcome take_outcome() { return {Reason::kDone, 0, 0}; }
};

TEST_CASE("a decoder whose stages are stuck completes its images all the same", "[hls][engine]") {
  const File file = make_jpeg({.pixels = make_pixels(40, 40, 3, 1)});
  HlsRunner runner({}, [](const Burst* commands, const Burst* encoded, Burst* tensors, Burst* completions,
                          std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d, std::uint32_t phase) {
    Engine<StuckSlot>().run({{commands, a}, {encoded, b}, {tensors, c}, {completions, d}}, phase);
  });
  const std::vector<HlsRequest> requests(20, whole_tensor(file, {0, 0, 40, 40}, {20, 20}));

  for (const HlsImage& image : runner.run(requests)) REQUIRE(image.outcome.reason == Reason::kTooLong);
}

}  // namespace
}  // namespace millrace::hls
