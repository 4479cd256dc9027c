// What batches of CUDA kernels are told: tables from batch to batch, start points, memory, and a reason for every image
// that is not planned.
#include <algorithm>
#include <map>

#include "kernels/cuda/plan/build_table.h"
#include "kernels/cuda/plan/plan.h"
#include "kernels/cuda/plan/start_points.h"
#include "kernels/cuda/reconstruct/tile.h"
#include "kernels/jpeg/restart_intervals.h"
#include "tests/support/host/guarded_bytes.h"
#include "tests/support/jpeg/random_jpeg.h"
#include "tests/support/pictures/test_data.h"
#include "tests/support/pictures/test_images.h"
#include "tests/support/rounds.h"
#include "tests/unit/kernels/jpeg/jpeg_rig.h"

namespace millrace::kernels::cuda {
namespace {

using kernels::Box;
using kernels::Size;
using kernels::jpeg::McuWindow;
using kernels::jpeg::read_header;

constexpr BatchRecipe kSmallPlan{.size = {24, 20}};

File picture(int width, int height, std::uint32_t seed, JpegSpec spec = {}) {
  spec.pixels = make_pixels(static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height), 3, seed);
  spec.optimise = true;
  return make_jpeg(spec);
}

ImageRequest request(const File& file, const Box& crop) {
  return {.file_untrusted = file_bytes(file), .crop = crop};
}

// The GPU's memory for tables, and what a batch's kernels would find there.
class TableMemory {
 public:
  explicit TableMemory(std::uint32_t slots) : tables_(slots) {}
  void upload(const BatchPlan& plan) {
    for (const TableRun& run : plan.table_runs) {
      REQUIRE(run.slot + run.count <= tables_.size());
      for (std::uint32_t i = 0; i < run.count; ++i) tables_[run.slot + i] = plan.new_tables[run.first + i];
    }
  }
  bool has(std::uint32_t slot, const DecodeTable& table) const {
    return std::memcmp(&tables_.at(slot), &table, sizeof table) == 0;
  }

 private:
  std::vector<DecodeTable> tables_;
};

void check_tables(const TableMemory& memory, const ImageJob& job, const File& file) {
  const auto header = read_header(file_bytes(file));
  for (std::size_t i = 0; i < job.components; ++i) {
    DecodeTable dc{}, ac{};
    REQUIRE(build_table(*header->dc[header->component[i].dc], kernels::jpeg::TableKind::kDc, dc));
    REQUIRE(build_table(*header->ac[header->component[i].ac], kernels::jpeg::TableKind::kAc, ac));
    REQUIRE(memory.has(job.component[i].dc_table, dc));
    REQUIRE(memory.has(job.component[i].ac_table, ac));
  }
}

bool meets(const McuWindow& window, int columns, std::int64_t first, std::int64_t end) {
  for (std::int64_t mcu = first; mcu < end; ++mcu) {
    const auto line = static_cast<int>(mcu / columns), column = static_cast<int>(mcu % columns);
    if (line >= window.lines.begin && line < window.lines.end && column >= window.columns.begin &&
        column < window.columns.end)
      return true;
  }
  return false;
}

McuWindow random_window(std::mt19937& random, int columns, int rows) {
  const Box box = random_box(random, {columns, rows});
  return {{box.top, box.top + box.height}, {box.left, box.left + box.width}};
}

// A scan without anything but markers: `bytes` bytes, then a restart marker, and so on; EOI at the end.
std::vector<std::uint8_t> scan_with_restarts(const std::vector<std::size_t>& bytes) {
  std::vector<std::uint8_t> scan;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (std::size_t at = 0; at < bytes[i]; ++at) scan.push_back(static_cast<std::uint8_t>(at % 250));
    if (bytes[i] > 3) scan[scan.size() - 2] = 0xFF, scan.back() = 0;  // stuffing
    scan.push_back(0xFF);
    scan.push_back(static_cast<std::uint8_t>(i + 1 == bytes.size() ? 0xD9 : 0xD0 + i % 8));
  }
  return scan;
}

TEST_CASE("tables stay on the GPU from batch to batch, and no batch loses one that it uses", "[cuda][plan]") {
  std::vector<File> files;
  for (std::uint32_t i = 0; i < 12; ++i) files.push_back(picture(40, 30, i));
  std::mt19937 random(5);
  for (const std::uint32_t slots : {16U, 48U}) {
    Planner planner(kSmallPlan, {.table_slots = slots});
    TableMemory memory(slots);

    for (int round = 0; round < 40; ++round) {
      std::vector<std::size_t> drawn;
      std::vector<ImageRequest> requests;
      for (int i = 0; i < 4; ++i) {
        drawn.push_back(static_cast<std::size_t>(below(random, 12)));
        requests.push_back(request(files[drawn.back()], {1, 2, 30, 25}));
      }
      const BatchPlan& plan = planner.plan(requests);
      memory.upload(plan);

      REQUIRE(plan.jobs.size() == 4);
      for (std::size_t i = 0; i < 4; ++i) check_tables(memory, plan.jobs[i], files[drawn[i]]);
    }
    const std::vector<ImageRequest> again(3, request(files[0], {0, 0, 40, 30}));
    planner.plan(again);
    REQUIRE(planner.plan(again).new_tables.empty());
  }
}

TEST_CASE("a batch with more tables than slots refuses the images that lack one", "[cuda][plan]") {
  std::vector<File> files;
  std::vector<ImageRequest> requests;
  for (std::uint32_t i = 0; i < 6; ++i) files.push_back(picture(40, 30, i));
  for (const File& file : files) requests.push_back(request(file, {0, 0, 40, 30}));
  Planner planner(kSmallPlan, {.table_slots = 8});
  TableMemory memory(8);

  const BatchPlan& plan = planner.plan(requests);
  memory.upload(plan);

  REQUIRE(plan.jobs.size() >= 1);
  REQUIRE(plan.jobs.size() < 6);
  REQUIRE(plan.refusals.size() == 6);
  for (std::size_t i = 0; i < plan.jobs.size(); ++i) check_tables(memory, plan.jobs[i], files[plan.requests[i]]);
}

TEST_CASE("an image's ranges of tokens, blocks and tensors are its own", "[cuda][plan]") {
  std::vector<File> files;
  std::vector<ImageRequest> requests;
  std::mt19937 random(9);
  for (std::uint32_t i = 0; i < 8; ++i) files.push_back(picture(30 + below(random, 200), 30 + below(random, 100), i));
  const File broken = {std::byte{0xFF}, std::byte{0xD8}};
  for (const File& file : files) {
    const Size size = read_header(file_bytes(file))->size;
    requests.push_back(request(file, random_box(random, size)));
    requests.push_back(request(broken, {0, 0, 1, 1}));
  }
  Planner planner(kSmallPlan);

  const BatchPlan& plan = planner.plan(requests);

  REQUIRE(plan.jobs.size() == files.size());
  std::uint64_t token = 0, block = 0;
  for (std::size_t i = 0; i < plan.jobs.size(); ++i) {
    const ImageJob& job = plan.jobs[i];
    REQUIRE(plan.requests[i] == 2 * i);
    REQUIRE(plan.refusals[2 * i].empty());
    REQUIRE_FALSE(plan.refusals[2 * i + 1].empty());
    REQUIRE(job.output == 2 * i * plan.tensor_bytes);
    REQUIRE(job.first_token == token);
    REQUIRE(job.first_token % 4 == 0);
    REQUIRE(job.first_block == block);
    token += job.token_capacity;
    block += std::uint64_t{job.end_mcu_row - job.first_mcu_row} * job.mcu_columns * job.blocks_in_mcu;
  }
  REQUIRE(plan.tokens == token);
  REQUIRE(plan.blocks == block);
}

TEST_CASE("a crop or a window that does not fit is refused with a reason", "[cuda][plan]") {
  const File file = picture(40, 30, 1);
  const Box crops[] = {{-1, 0, 10, 10}, {0, -1, 10, 10}, {31, 0, 10, 10},         {0, 21, 10, 10},
                       {0, 0, 0, 10},   {0, 0, 10, 0},   {0, 0, 41, 30},          {0, 0, 40, 31},
                       {40, 30, 1, 1},  {0, 0, -1, 5},   {5, 5, 1 << 30, 1 << 30}};
  std::vector<ImageRequest> requests;
  for (const Box& crop : crops) requests.push_back(request(file, crop));
  const auto with_window = [&](Size resized, Box window) {
    requests.push_back(request(file, {0, 0, 40, 30}));
    requests.back().resized = resized;
    requests.back().window = window;
  };
  with_window({30, 30}, {7, 0, 24, 20});
  with_window({30, 30}, {0, 11, 24, 20});
  with_window({30, 30}, {0, 0, 23, 20});
  with_window({70000, 30}, {0, 0, 24, 20});
  with_window({0, 30}, {0, 0, 24, 20});
  Planner planner(kSmallPlan);

  const BatchPlan& plan = planner.plan(requests);

  REQUIRE(plan.jobs.empty());
  for (const std::string_view reason : plan.refusals) REQUIRE(!reason.empty());
  REQUIRE(plan.tiles.empty());
  REQUIRE(plan.tokens == 0);
}

TEST_CASE("4:1:1 is planned, though the CPU's reader leaves it alone", "[cuda][plan]") {
  JpegSpec spec;
  spec.h_samp = 4;
  spec.v_samp = 1;
  const File file = picture(70, 30, 3, spec);
  const std::vector<ImageRequest> requests{request(file, {3, 4, 50, 20})};
  Planner planner(kSmallPlan);

  const BatchPlan& plan = planner.plan(requests);

  REQUIRE_FALSE(read_header(file_bytes(file)));
  REQUIRE(plan.refusals[0] == "");
  REQUIRE(plan.jobs[0].blocks_in_mcu == 6);
  REQUIRE(plan.jobs[0].mcu_columns == 3);
}

TEST_CASE("filters that the kernels do not compute bring their weights", "[cuda][plan]") {
  const File file = picture(90, 70, 4);
  const std::vector<ImageRequest> requests{request(file, {3, 4, 80, 60}), request(file, {0, 0, 24, 20})};
  for (const auto filter : {kernels::Filter::kNearest, kernels::Filter::kBox, kernels::Filter::kBilinear,
                            kernels::Filter::kHamming, kernels::Filter::kBicubic, kernels::Filter::kLanczos}) {
    BatchRecipe recipe = kSmallPlan;
    recipe.filter = filter;
    Planner planner(recipe);

    const BatchPlan& plan = planner.plan(requests);

    REQUIRE(plan.jobs.size() == 2);
    const bool has_tables = !is_computed(filter);
    REQUIRE(plan.weights.empty() == !has_tables);
    for (const ImageJob& job : plan.jobs) REQUIRE((job.column_weights != kComputed) == has_tables);
    if (!has_tables) continue;
    const auto across = kernels::axis_weights({kernels::Axis::kColumns, 3, 80, 24, 0, 24, filter});
    const std::int32_t* const table = plan.weights.data() + plan.jobs[0].column_weights;
    REQUIRE(table[0] == across.taps);
    REQUIRE(std::equal(across.start.begin(), across.start.end(), table + 1));
    REQUIRE(std::equal(across.weight.begin(), across.weight.end(), table + 1 + 24));
  }
}

TEST_CASE("restart intervals that meet a window are found, with their bytes", "[cuda][plan]") {
  std::mt19937 random(21);
  for (int round = 0; round < rounds(300); ++round) {
    const int columns = 1 + below(random, 9), rows = 1 + below(random, 9), interval = 1 + below(random, 20);
    const kernels::jpeg::SeekGrid grid{columns, rows, 1, 1};
    const std::int64_t mcus = grid.mcus();
    std::vector<std::size_t> bytes(static_cast<std::size_t>((mcus + interval - 1) / interval));
    for (std::size_t& count : bytes) count = static_cast<std::size_t>(below(random, 30));
    const auto scan = scan_with_restarts(bytes);
    const McuWindow window = random_window(random, columns, rows);
    CAPTURE(columns, rows, interval, window.lines.begin, window.lines.end, window.columns.begin, window.columns.end);

    std::vector<Segment> segments;
    REQUIRE(append_intervals(scan, grid, interval, window, segments));

    const std::int64_t wanted_end = std::int64_t{window.lines.end - 1} * columns + window.columns.end;
    std::size_t byte = 0, at = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const std::int64_t first = static_cast<std::int64_t>(i) * interval, end = std::min(first + interval, mcus);
      if (meets(window, columns, first, end)) {
        REQUIRE(at < segments.size());
        REQUIRE(segments[at].first_mcu == first);
        REQUIRE(segments[at].mcus == end - first);
        REQUIRE(segments[at].first_bit == 8 * byte);
        REQUIRE(segments[at].end_bit == 8 * (byte + bytes[i]));
        REQUIRE(segments[at].checked == (end <= wanted_end && end < mcus ? kEndPadded : kEndUnknown));
        ++at;
      }
      byte += bytes[i] + 2;
    }
    REQUIRE(at == segments.size());
  }
}

TEST_CASE("a restart marker that is missing or another one makes the image one for the CPU", "[cuda][plan]") {
  const kernels::jpeg::SeekGrid grid{2, 4, 1, 1};
  const auto scan = scan_with_restarts({10, 10, 10, 10});
  const McuWindow all{{0, 4}, {0, 2}}, above{{0, 2}, {0, 2}};
  for (const int code : {0xD0, 0xD3, 0xD9, 0xFF}) {
    auto other = scan;
    other[12 + 10 + 1] = static_cast<std::uint8_t>(code);
    std::vector<Segment> segments;
    REQUIRE_FALSE(append_intervals(other, grid, 2, all, segments));
    REQUIRE(append_intervals(other, grid, 2, above, segments));  // which ends before that marker
  }
  for (std::size_t size = 0; size < scan.size(); ++size) {
    GuardedBytes memory(std::max<std::size_t>(size, 1));
    const auto cut = memory.at_end({reinterpret_cast<const std::byte*>(scan.data()), size});
    std::vector<Segment> segments;
    const bool found = append_intervals(file_bytes(cut), grid, 2, all, segments);
    REQUIRE(found == (size >= 36));
    for (const Segment& segment : segments) REQUIRE(segment.end_bit <= 8 * size);
  }
}

TEST_CASE("a scan is well marked whose restarts stand in turns, as many as belong there, and EOI behind them",
          "[cuda][plan]") {
  const auto is_well_marked = [](kernels::jpeg::FileBytes scan, std::int64_t mcus, std::int64_t interval) {
    return kernels::jpeg::is_well_marked(scan, mcus, interval, kernels::best_target());
  };
  auto scan = scan_with_restarts({10, 12, 14});
  for (const std::int64_t mcus : {5, 6}) REQUIRE(is_well_marked(scan, mcus, 2));
  for (const std::int64_t mcus : {1, 2, 4, 7, 8}) REQUIRE_FALSE(is_well_marked(scan, mcus, 2));
  REQUIRE_FALSE(is_well_marked(scan, 6, 0));
  REQUIRE_FALSE(is_well_marked(scan, 6, 6));
  REQUIRE_FALSE(is_well_marked(scan, 6, 9));
  REQUIRE(is_well_marked(std::span(scan).last(16), 6, 0));
  REQUIRE(is_well_marked(std::span(scan).last(16), 6, 9));
  for (std::size_t size = 0; size < scan.size(); ++size) {
    GuardedBytes memory(std::max<std::size_t>(size, 1));
    const auto cut = memory.at_end({reinterpret_cast<const std::byte*>(scan.data()), size});
    REQUIRE_FALSE(is_well_marked(file_bytes(cut), 6, 2));
  }
  scan.push_back(7);
  REQUIRE(is_well_marked(scan, 6, 2));
  for (const int code : {0x01, 0xD0, 0xD2, 0xD9, 0xFF}) {
    auto other = scan;
    other[10 + 2 + 12 + 1] = static_cast<std::uint8_t>(code);
    REQUIRE_FALSE(is_well_marked(other, 6, 2));
  }
}

TEST_CASE("an index gives the pieces that meet a window, or nothing where it ends above", "[cuda][plan]") {
  const File file = picture(300, 200, 8);
  const auto header = read_header(file_bytes(file));
  std::vector<std::uint8_t> pixels(300 * 200 * 3);
  kernels::jpeg::Decoder decoder;
  std::mt19937 random(33);
  for (const int covered : {90, 200}) {
    kernels::jpeg::Seeking seeking{.owner = 7};
    REQUIRE(decoder.decode(*header, {0, 0, 300, covered}, {pixels.data(), 300, covered, 3, 900},
                           std::chrono::steady_clock::time_point::max(), &seeking) == kernels::jpeg::Outcome::kDecoded);
    kernels::jpeg::SeekIndex index;
    REQUIRE(index.read(seeking.made, *header, 7));
    const auto grid = index.grid();

    for (int round = 0; round < rounds(100); ++round) {
      const McuWindow window = random_window(random, grid.columns, grid.rows);
      std::vector<Segment> segments;
      const bool reaches = append_indexed(index, window, segments);
      REQUIRE(reaches ==
              (index.places().back().mcu >= std::int64_t{window.lines.end - 1} * grid.columns + window.columns.end));
      std::size_t at = 0;
      for (std::size_t i = 0; reaches && i + 1 < index.places().size(); ++i) {
        const auto &place = index.places()[i], &next = index.places()[i + 1];
        if (!meets(window, grid.columns, place.mcu, next.mcu)) continue;
        REQUIRE(at < segments.size());
        REQUIRE(segments[at].first_mcu == place.mcu);
        REQUIRE(segments[at].mcus == next.mcu - place.mcu);
        REQUIRE(segments[at].first_bit == place.bit);
        REQUIRE(segments[at].end_bit == next.bit);
        REQUIRE(segments[at].end_predictors[2] == next.predictors[2]);
        REQUIRE(segments[at++].checked == kEndExact);
      }
      REQUIRE(at == segments.size());
    }
  }
}

// What the kernels count on.
void check_job(const ImageJob& job, const BatchPlan& plan, std::size_t file_size) {
  REQUIRE(job.bytes + job.byte_count == file_size);
  REQUIRE((job.components == 1 || job.components == 3));
  REQUIRE(job.crop_left + job.crop_width <= job.width);
  REQUIRE(job.crop_top + job.crop_height <= job.height);
  REQUIRE(job.first_mcu_row < job.end_mcu_row);
  REQUIRE(job.end_mcu_row <= job.mcu_rows);
  int blocks = 0;
  for (std::size_t i = 0; i < job.components; ++i) {
    blocks += job.component[i].h * job.component[i].v;
    REQUIRE(job.component[i].dc_table < plan.table_slots);
    REQUIRE(job.component[i].ac_table < plan.table_slots);
    REQUIRE(job.component[i].quant < plan.quants.size());
  }
  REQUIRE(blocks == job.blocks_in_mcu);
  REQUIRE(job.first_segment + job.segments <= plan.segments.size());
  std::uint64_t next = 0;
  for (std::size_t i = job.first_segment; i < job.first_segment + job.segments; ++i) {
    const Segment& segment = plan.segments[i];
    REQUIRE(segment.first_mcu >= next);
    REQUIRE(segment.mcus >= 1);
    next = segment.first_mcu + segment.mcus;
    REQUIRE(segment.first_bit <= segment.end_bit);
    REQUIRE(segment.end_bit <= std::uint64_t{8} * job.byte_count);
  }
  REQUIRE(next <= std::uint64_t{job.mcu_columns} * job.mcu_rows);
}

TEST_CASE("hostile files are planned within their bounds, or refused", "[cuda][plan]") {
  std::vector<std::pair<std::string, File>> files;
  for (const char* const folder : {"bad-jpeg", "jpeg-variants"}) {
    if (const auto data = test_data(folder)) {
      for (auto& file : files_in(*data)) files.push_back(std::move(file));
    }
  }
  std::mt19937 random(77);
  for (int i = 0; i < rounds(300); ++i) {
    const JpegFile file = write_jpeg(draw_jpeg({.kind = JpegDraw::Kind::kAny}, random));
    files.emplace_back("drawn " + std::to_string(i), file.bytes);
    files.emplace_back("damaged " + std::to_string(i),
                       damage(file, static_cast<JpegDamage>(below(random, kJpegDamages)), random));
  }
  Planner planner(kSmallPlan);
  for (const auto& [name, file] : files) {
    CAPTURE(name);
    GuardedBytes memory(std::max<std::size_t>(file.size(), 1));
    const auto header = read_header(file_bytes(file), kernels::jpeg::Chroma::kQuarter);
    ImageRequest hostile = request({}, random_box(random, header ? header->size : Size{9, 9}));
    hostile.file_untrusted = file_bytes(memory.at_end(file));

    const BatchPlan& plan = planner.plan({&hostile, 1});

    REQUIRE(plan.jobs.size() == (plan.refusals[0].empty() ? 1 : 0));
    if (!plan.jobs.empty()) check_job(plan.jobs[0], plan, file.size());
  }
}

}  // namespace
}  // namespace millrace::kernels::cuda
