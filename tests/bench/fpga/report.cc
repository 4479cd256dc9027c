#include "tests/bench/fpga/report.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace millrace::bench {
namespace {

using namespace hls::model;
using hls::Source;

__attribute__((format(printf, 1, 2))) std::string formatted(const char* format, ...) {
  char text[1024];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

const char* source_of(const Design& design) {
  return design.source == Source::kPacked ? "packed" : "jpeg";
}

std::string title_of(const Design& design) {
  return formatted("%s: %d x %d lanes x %d turns, %d lanes an inverse DCT and a resampler of %d pixels, %.0f MHz",
                   design.name.c_str(), design.units, design.lanes, design.turns, design.lanes_an_idct,
                   design.resample_pixels, design.clock_mhz);
}

void print_resource(const char* name, double takes, double shell, double all) {
  if (all > 0)
    std::printf("  model  %-6s %10.0f of %10.0f: %5.1f %%, and the shell %5.1f %%\n", name, takes, all,
                100 * takes / all, 100 * shell / all);
}

}  // namespace

void print_pictures(std::span<const Picture> pictures) {
  double symbols = 0, bits = 0, blocks = 0, bytes = 0, packed = 0;
  const auto count = static_cast<double>(pictures.size());
  for (const Picture& picture : pictures) {
    symbols += static_cast<double>(picture.symbols()) / count;
    bits += static_cast<double>(picture.bits()) / count;
    blocks += static_cast<double>(picture.blocks()) / count;
    bytes += static_cast<double>(picture.file_bytes) / count;
    packed += static_cast<double>(picture.packed_bytes) / count;
  }
  std::printf("%zu photographs, the mean one: %.0f symbols of %.2f bits, %.0f blocks, %.1f KB, packed %.1f KB\n",
              pictures.size(), symbols, bits / symbols, blocks, bytes / 1e3, packed / 1e3);
  std::printf("(ImageNet's mean: 151500 symbols of 5.64 bits, 8198 blocks, 110 KB)\n");
  std::printf("All figures below are a model's. No card was used.\n\n");
}

void print_calibration(const std::vector<CalibrationRow>& rows) {
  std::printf("Calibration of the model on published designs\n");
  std::printf("  %-24s %12s %12s %8s   %s\n", "figure", "published", "model", "off", "predicted with");
  for (const CalibrationRow& row : rows) {
    std::printf("  %-24s %9.4g %-2s %9.4g %-2s %+6.1f %%%s %s\n", row.figure->name.c_str(), row.figure->published,
                row.figure->is_rate ? "/s" : "ms", row.result.predicted, row.figure->is_rate ? "/s" : "ms",
                100 * row.result.off, row.figure->is_held ? " " : "*", row.input.c_str());
  }
  std::printf("  * what another assumption would give (hls/model/README.md); the model is not held to it\n");
}

void print_prediction(const Design& design, const Card& card, const Prediction& prediction) {
  std::printf("\nModel of %s\n  on %s\n", title_of(design).c_str(), card.title.c_str());
  std::printf(
      "  model  %.0f images/s; binds: %s; %.1f ms a call of %d; %.1f W of %.0f; %.2f mJ an image; memory %.1f of %.0f "
      "GB/s\n",
      prediction.images_a_second, prediction.binds.c_str(), prediction.call_ms, design.batch, prediction.watts,
      card.most_watts, prediction.millijoules, prediction.memory_gb, card.memory);
  std::printf("  model  %-10s %6s %8s %8s %12s %9s\n", "stage", "copies", "busy", "starved", "output full", "no image");
  for (const StageReport& stage : prediction.stages) {
    std::printf("  model  %-10s %6zu %6.1f %% %6.1f %% %10.1f %%", stage.stage.c_str(), stage.copies, 100 * stage.busy,
                100 * stage.starved, 100 * stage.output_full);
    if (stage.stage == "entropy") std::printf(" %7.1f %%", 100 * stage.no_image);
    std::printf("\n");
  }
  for (const FifoReport& fifo : prediction.fifos)
    std::printf("  model  FIFO %-13s most held %6lld of %6lld\n", fifo.fifo.c_str(), static_cast<long long>(fifo.most),
                static_cast<long long>(fifo.capacity));
  print_resource("LUT", prediction.takes.lut, card.shell.lut, card.all.lut);
  print_resource("FF", prediction.takes.ff, card.shell.ff, card.all.ff);
  print_resource("BRAM", prediction.takes.bram, card.shell.bram, card.all.bram);
  print_resource("URAM", prediction.takes.uram, card.shell.uram, card.all.uram);
  print_resource("DSP", prediction.takes.dsp, card.shell.dsp, card.all.dsp);
  std::printf(
      "  model  fullest resource %.1f %% of at most %.0f %%; such a design closes at %.0f MHz, by the model's rule\n",
      100 * prediction.share, 100 * kMostShare, fastest_clock(design, prediction.share));
}

void print_explored(const Card& card, std::span<const Tried> tried) {
  const auto fits = std::count_if(tried.begin(), tried.end(), [](const Tried& one) { return one.fits; });
  std::printf(
      "\nModel: %zu designs that %s has room for, %td of them within its power; the front of images/s against watts:\n",
      tried.size(), card.title.c_str(), fits);
  std::vector<const Tried*> front;
  for (const Tried& one : tried) {
    if (one.worth_by_watts) front.push_back(&one);
  }
  std::sort(front.begin(), front.end(),
            [](const Tried* a, const Tried* b) { return a->prediction.watts < b->prediction.watts; });
  for (const Tried* one : front) {
    std::printf("  model  %7.0f images/s %6.1f W %6.3f mJ %4.0f kLUT %4.0f %%  %s\n", one->prediction.images_a_second,
                one->prediction.watts, one->prediction.millijoules, one->prediction.takes.lut / 1e3,
                100 * one->prediction.share, title_of(one->design).c_str());
  }
}

void print_depths(std::span<const DepthTried> tried) {
  std::printf("\nModel: depths of FIFOs, one changed at a time; > is the least that keeps 99 %% of the best rate\n");
  for (const DepthTried& one : tried)
    std::printf("  model  %s %-13s %6d  %7.0f images/s, the stage before it stopped %5.1f %% of the time\n",
                one.is_chosen ? ">" : " ", one.fifo.c_str(), one.depth, one.images_a_second, 100 * one.output_full);
}

std::string csv_of(const Card& card, std::span<const Tried> tried) {
  std::string csv =
      "model_card,source,units,lanes,turns,lanes_an_idct,resample_pixels,clock_mhz,images_a_second,watts,millijoules,"
      "lut,"
      "ff,bram,uram,dsp,share,binds,fits,worth_by_watts,worth_by_lut\n";
  for (const Tried& one : tried) {
    const Design& design = one.design;
    const Prediction& is = one.prediction;
    csv += formatted("%s,%s,%d,%d,%d,%d,%d,%.0f,%.0f,%.2f,%.4f,%.0f,%.0f,%.0f,%.0f,%.0f,%.4f,%s,%d,%d,%d\n",
                     card.name.c_str(), source_of(design), design.units, design.lanes, design.turns,
                     design.lanes_an_idct, design.resample_pixels, design.clock_mhz, is.images_a_second, is.watts,
                     is.millijoules, is.takes.lut, is.takes.ff, is.takes.bram, is.takes.uram, is.takes.dsp, is.share,
                     is.binds.c_str(), one.fits, one.worth_by_watts, one.worth_by_lut);
  }
  return csv;
}

std::string json_of(const CalibrationRow& row) {
  return formatted(
      "{\"model\": \"calibration\", \"figure\": \"%s\", \"published\": %.6g, \"predicted\": %.6g, \"unit\": \"%s\", "
      "\"off\": %.4f}\n",
      row.figure->name.c_str(), row.figure->published, row.result.predicted, row.figure->is_rate ? "images/s" : "ms",
      row.result.off);
}

std::string json_of(const Card& card, const Tried& one) {
  const Design& design = one.design;
  const Prediction& is = one.prediction;
  return formatted(
      "{\"model\": \"design\", \"card\": \"%s\", \"source\": \"%s\", \"units\": %d, \"lanes\": %d, \"turns\": %d, "
      "\"lanes_an_idct\": %d, \"resample_pixels\": %d, \"clock_mhz\": %.0f, \"images_a_second\": %.1f, \"watts\": "
      "%.2f, "
      "\"millijoules\": %.4f, \"lut\": %.0f, \"share\": %.4f, \"binds\": \"%s\", \"fits\": %s, \"worth_by_watts\": %s, "
      "\"worth_by_lut\": %s}\n",
      card.title.c_str(), source_of(design), design.units, design.lanes, design.turns, design.lanes_an_idct,
      design.resample_pixels, design.clock_mhz, is.images_a_second, is.watts, is.millijoules, is.takes.lut, is.share,
      is.binds.c_str(), one.fits ? "true" : "false", one.worth_by_watts ? "true" : "false",
      one.worth_by_lut ? "true" : "false");
}

}  // namespace millrace::bench
