// millrace-fpga-model: how fast a decoder on an FPGA would be, by a model of its stages (hls/model). config/setup.sh bench
// --fpga-model runs it.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "tests/bench/fpga/inputs.h"
#include "tests/bench/fpga/report.h"

namespace millrace::bench {
namespace {

using namespace hls::model;
using hls::Source;

struct Options {
  std::string data, card = "u50", source = "jpeg", recipe = "train", output;
  std::size_t images = 2048;
  int units = 0, lanes = 0, turns = 0, shared = 0, pixels = 0, batch = 0, calls = 0, element_bytes = 1;
  double clock = 0;
  bool calibrates = true, explores = false, json = false, stops = false;
  int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
};

std::string default_data() {
  const char* data = std::getenv("MILLRACE_TEST_DATA");
  const std::string folder = std::string(data == nullptr ? "" : data) + "/photos";
  return data != nullptr && std::filesystem::is_directory(folder) ? folder : "";
}

Recipe recipe_of(const Options& options) {
  return options.recipe == "train" ? Recipe::kTrain : options.recipe == "centre" ? Recipe::kCentre : Recipe::kWhole;
}

void set(int& field, int value) {
  if (value > 0) field = value;
}

Design design_of(const Options& options) {
  Design design = options.source == "packed" ? packed_design() : jpeg_design();
  set(design.units, options.units);
  set(design.lanes, options.lanes);
  set(design.turns, options.turns);
  set(design.lanes_an_idct, options.shared);
  set(design.lanes_a_resampler, options.shared);
  set(design.resample_pixels, options.pixels);
  set(design.batch, options.batch);
  set(design.calls, options.calls);
  design.element_bytes = options.element_bytes;
  design.decodes_whole_scan = !options.stops;
  if (options.clock > 0) design.clock_mhz = options.clock;
  return design;
}

void show_calibration(const Options& options, std::span<const Picture> pictures) {
  constexpr std::size_t kStandIns = 3;
  const std::vector<Pixels> photographs = read_pixels(options.data, 64);
  std::vector<CalibrationRow> rows;
  std::map<std::string, std::vector<Picture>> made;
  for (const Figure& figure : figures()) {
    CalibrationRow row{&figure, {}, "these photographs, for ImageNet's"};
    std::vector<Picture>& inputs = made[figure.input.name];
    if (figure.input.width > 0) {
      if (photographs.empty()) continue;
      for (std::size_t i = inputs.size(); i < kStandIns; ++i)
        inputs.push_back(stand_in(figure.input, photographs, 17 * i));
      row.input = "stand-ins for " + figure.input.name + ":";
      for (const Picture& picture : inputs)
        row.input += " " + std::to_string(picture.symbols() / 1000) + "k symbols in " +
                     std::to_string(picture.file_bytes / 1000) + " KB,";
      row.input.pop_back();
    }
    row.result = calibrate(figure, inputs.empty() ? pictures : std::span<const Picture>(inputs));
    rows.push_back(row);
  }
  if (!options.json) return print_calibration(rows);
  for (const CalibrationRow& row : rows) std::fputs(json_of(row).c_str(), stdout);
}

bool write(const std::string& name, const std::string& text) {
  std::ofstream file(name, std::ios::binary);
  file << text;
  return static_cast<bool>(file.flush());
}

// Short calls, and many at once, so that a short run is one of full pipes.
constexpr int kExploredBatch = 40, kExploredCalls = 8;
constexpr std::size_t kExploredImages = 334;

int explore_card(const Options& options, const Card& card, std::span<const Picture> pictures) {
  std::string csv, json;
  for (const Source source : {Source::kJpegScan, Source::kPacked}) {
    std::vector<Design> designs = space_of(source);
    for (Design& design : designs) {
      design.batch = kExploredBatch;
      design.calls = kExploredCalls;
    }
    const WorkSpec spec = work_spec(designs.front(), recipe_of(options));
    const std::vector<Tried> tried =
        explore(designs, card, jobs_of(pictures, spec, std::min(options.images, kExploredImages)), options.threads);
    const std::string lines = csv_of(card, tried);
    csv += csv.empty() ? lines : lines.substr(lines.find('\n') + 1);
    for (const Tried& one : tried) json += json_of(card, one);
    if (options.json) continue;
    print_explored(card, tried);
    const Tried* best = best_of(tried);
    if (best == nullptr) continue;
    const std::vector<Job> jobs = jobs_of(pictures, spec, options.images);
    Design design = best->design;
    design.batch = Design{}.batch;
    design.calls = Design{}.calls;
    print_prediction(design, card, predict(design, card, jobs));
    design.batch = kExploredBatch;
    design.calls = kExploredCalls;
    print_depths(
        explore_depths(design, card, std::span(jobs).first(std::min(jobs.size(), kExploredImages)), options.threads));
  }
  if (options.json) std::fputs(json.c_str(), stdout);
  if (options.output.empty()) return 0;
  if (write(options.output + ".csv", csv) && write(options.output + ".jsonl", json)) return 0;
  std::fprintf(stderr, "millrace-fpga-model: %s.csv or .jsonl cannot be written\n", options.output.c_str());
  return 1;
}

int run(const Options& options) {
  const auto began = std::chrono::steady_clock::now();
  const std::vector<Picture> pictures = read_folder(options.data);
  if (pictures.empty()) {
    std::fprintf(stderr, "millrace-fpga-model: no JPEG files in %s that the decoder would take\n",
                 options.data.c_str());
    return 2;
  }
  if (!options.json) print_pictures(pictures);
  if (options.calibrates) show_calibration(options, pictures);
  const Card card = *card_of(options.card);
  int status = 0;
  if (options.explores) {
    status = explore_card(options, card, pictures);
  } else {
    const Design design = design_of(options);
    const std::vector<Job> jobs = jobs_of(pictures, work_spec(design, recipe_of(options)), options.images);
    Tried one{.design = design, .prediction = predict(design, card, jobs)};
    one.fits = is_placeable(design, card) && one.prediction.watts <= card.most_watts;
    if (options.json)
      std::fputs(json_of(card, one).c_str(), stdout);
    else
      print_prediction(design, card, one.prediction);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  std::fprintf(stderr, "model: %.1f s\n", took.count());
  return status;
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  using millrace::bench::Options;
  Options options;
  options.data = millrace::bench::default_data();
  CLI::App app{
      "How fast an FPGA decoder would be: a model of its stages, driven by the symbols of real photographs. Nothing\n"
      "runs on a card. First it says how far published designs are from what it says of them; then what it says of a\n"
      "design on a card, or with --explore of all designs that the card has room and power for.\n"
      "  millrace-fpga-model --card u50                        the design of hls/, from JPEG files\n"
      "  millrace-fpga-model --card u50 --source packed        from packed forms\n"
      "  millrace-fpga-model --lanes 8 --turns 1 --clock 250   another design\n"
      "  millrace-fpga-model --explore --output DIR/u50        u50.csv, u50.jsonl; tests/bench/fpga/draw_designs.py "
      "draws "
      "them\n"
      "hls/model/README.md says what is modelled, with which assumptions, and how to read what comes out.\n"};
  app.add_option("--data", options.data, "folder of JPEG files (default: photos/ in MILLRACE_TEST_DATA)");
  app.add_option("--card", options.card, "u50 or u250")->check(CLI::IsMember({"u50", "u250"}));
  app.add_option("--source", options.source, "jpeg or packed")->check(CLI::IsMember({"jpeg", "packed"}));
  app.add_option("--recipe", options.recipe, "train (RandomResizedCrop 224), centre (256, 224) or whole")
      ->check(CLI::IsMember({"train", "centre", "whole"}));
  app.add_option("--images", options.images, "images to go through a design")->check(CLI::Range(1, 1 << 20));
  app.add_option("--units", options.units, "compute units")->check(CLI::Range(1, 16));
  app.add_option("--lanes", options.lanes, "lanes of a unit")->check(CLI::Range(1, 64));
  app.add_option("--turns", options.turns, "images in turns in a lane")->check(CLI::Range(1, 8));
  app.add_option("--shared", options.shared, "lanes that share an inverse DCT and a resampler")
      ->check(CLI::Range(1, 16));
  app.add_option("--pixels", options.pixels, "pixels a clock of a resampler")->check(CLI::Range(1, 32));
  app.add_option("--clock", options.clock, "MHz")->check(CLI::Range(50.0, 800.0));
  app.add_option("--batch", options.batch, "images of a call")->check(CLI::Range(1, 256));
  app.add_option("--calls", options.calls, "calls of a unit at once")->check(CLI::Range(1, 8));
  app.add_option("--element-bytes", options.element_bytes, "of tensors")->check(CLI::IsMember({1, 2, 4}));
  app.add_flag("--stops-behind-crop", options.stops, "a lane leaves an image when its crop is decoded");
  app.add_flag("--calibrate,!--no-calibrate", options.calibrates, "say how far published designs are off (default)");
  app.add_flag("--explore", options.explores, "all designs under the card's resources and power");
  app.add_option("--threads", options.threads, "of --explore (default: one a core)")->check(CLI::Range(1, 256));
  app.add_option("--output", options.output, "files of --explore, without their ending");
  app.add_flag("--json", options.json, "JSON objects, one a line, in the place of what people read");
  CLI11_PARSE(app, argc, argv);
  if (options.data.empty()) {
    std::fprintf(stderr, "millrace-fpga-model: no photographs: say --data FOLDER, or set MILLRACE_TEST_DATA\n");
    return 2;
  }
  return millrace::bench::run(options);
}
