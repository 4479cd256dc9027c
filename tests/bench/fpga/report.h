// What the model says, for people and for programs. The word "model" is in all of it. Thread-safe: plain functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "hls/model/calibration.h"
#include "hls/model/explore.h"

namespace millrace::bench {

struct CalibrationRow {
  const hls::model::Figure* figure = nullptr;
  hls::model::Calibrated result;
  std::string input;  // what it was predicted with
};

// What the pictures are on average; ImageNet's mean beside it.
void print_pictures(std::span<const hls::model::Picture> pictures);
void print_calibration(const std::vector<CalibrationRow>& rows);
void print_prediction(const hls::model::Design& design, const hls::model::Card& card,
                      const hls::model::Prediction& prediction);
void print_explored(const hls::model::Card& card, std::span<const hls::model::Tried> tried);
void print_depths(std::span<const hls::model::DepthTried> tried);

// A CSV line of names, and one for each design.
std::string csv_of(const hls::model::Card& card, std::span<const hls::model::Tried> tried);

// JSON objects, one a line each.
std::string json_of(const CalibrationRow& row);
std::string json_of(const hls::model::Card& card, const hls::model::Tried& tried);

}  // namespace millrace::bench
