// The learned policies of AutoAugment (Cubuk, Zoph, Mane, Vasudevan, Le: "AutoAugment: learning augmentation strategies
// from data", CVPR 2019, tables 7 to 9), as torchvision has them. Constant.
#pragma once

#include <span>
#include <string_view>

#include "proto/base/steps.h"

namespace millrace {

struct PolicyOperation {
  std::string_view name;  // of published_operation()
  float probability = 0;
  int bin = 0;  // of 10
};

struct SubPolicy {
  PolicyOperation first;
  PolicyOperation second;
};

constexpr int kPolicyBins = 10;

std::span<const SubPolicy> sub_policies(steps::AugmentPolicy policy);

}  // namespace millrace
