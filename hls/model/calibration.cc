#include "hls/model/calibration.h"

#include <cstddef>

#include "hls/model/decoder.h"
#include "hls/model/resources.h"

namespace millrace::hls::model {
namespace {

constexpr const char* kVitis = "Vitis codec library, benchmark";

// The Huffman decoder of the same library alone, as a simulation of the circuit: nothing calls it, and what comes behind
// never stops it.
Design vitis_huffman() {
  Design design = vitis_design();
  design.name = "vitis Huffman decoder";
  design.clock_mhz = 300;
  design.gather_clocks = -1;
  design.idct_coefficients = 64;
  design.write_bytes = 64;
  design.call_us = 0;
  return design;
}

const Input kAndroid{"android.jpg", 960, 1280, 14.2};
const Input kLena{"lena_c_512.jpg", 512, 512, 5.2};
const Input kSmall{"t0.jpg", 616, 516, 9.3};

}  // namespace

const std::vector<Figure>& figures() {
  static const std::vector<Figure> all = {
      {"vitis.960x1280", kVitis, 1.515, false, vitis_design(), "u50", Recipe::kNothing, kAndroid},
      {"vitis.lena", kVitis, 1148, true, vitis_design(), "u50", Recipe::kNothing, kLena},
      {"vitis.616x516", kVitis, 0.774, false, vitis_design(), "u50", Recipe::kNothing, kSmall},
      {"vitis.960x1280.64", kVitis, 1.515, false, vitis_design(64), "u50", Recipe::kNothing, kAndroid, false},
      {"vitis.lena.64", kVitis, 1148, true, vitis_design(64), "u50", Recipe::kNothing, kLena, false},
      {"vitis.616x516.64", kVitis, 0.774, false, vitis_design(64), "u50", Recipe::kNothing, kSmall, false},
      {"vitis.huffman.3264x2448",
       kVitis,
       10.47,
       false,
       vitis_huffman(),
       "u50",
       Recipe::kNothing,
       {"iphone.jpg", 3264, 2448, 5.4}},
      // 20 cores' worth of decoding at 228 images/s a core (10 of them give 2,280) to 300: the middle.
      {"dlbooster",
       "DLBooster, sections 2.2 and 7, table 1",
       5280,
       true,
       dlbooster_design(),
       "arria10",
       Recipe::kWhole,
       {}},
  };
  return all;
}

Calibrated calibrate(const Figure& figure, std::span<const Picture> inputs) {
  const Card card = *card_of(figure.card);
  const WorkSpec spec = work_spec(figure.design, figure.recipe);
  Calibrated result;
  if (figure.input.width == 0) {
    const std::vector<Job> jobs = jobs_of(inputs, spec, 1024);
    result.predicted = predict(figure.design, card, jobs).images_a_second;
  } else {
    double seconds = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      seconds += predict(figure.design, card, jobs_of(inputs.subspan(i, 1), spec, 1)).seconds;
    seconds /= static_cast<double>(inputs.size());
    result.predicted = figure.is_rate ? 1 / seconds : seconds * 1e3;
  }
  result.off = result.predicted / figure.published - 1;
  return result;
}

}  // namespace millrace::hls::model
