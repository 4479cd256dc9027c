#include "daemon/draw/policies.h"

namespace millrace {
namespace {

constexpr SubPolicy kImageNet[] = {
    {{"Posterize", 0.4F, 8}, {"Rotate", 0.6F, 9}},  {{"Solarize", 0.6F, 5}, {"AutoContrast", 0.6F, 0}},
    {{"Equalize", 0.8F, 0}, {"Equalize", 0.6F, 0}}, {{"Posterize", 0.6F, 7}, {"Posterize", 0.6F, 6}},
    {{"Equalize", 0.4F, 0}, {"Solarize", 0.2F, 4}}, {{"Equalize", 0.4F, 0}, {"Rotate", 0.8F, 8}},
    {{"Solarize", 0.6F, 3}, {"Equalize", 0.6F, 0}}, {{"Posterize", 0.8F, 5}, {"Equalize", 1.0F, 0}},
    {{"Rotate", 0.2F, 3}, {"Solarize", 0.6F, 8}},   {{"Equalize", 0.6F, 0}, {"Posterize", 0.4F, 6}},
    {{"Rotate", 0.8F, 8}, {"Color", 0.4F, 0}},      {{"Rotate", 0.4F, 9}, {"Equalize", 0.6F, 0}},
    {{"Equalize", 0.0F, 0}, {"Equalize", 0.8F, 0}}, {{"Invert", 0.6F, 0}, {"Equalize", 1.0F, 0}},
    {{"Color", 0.6F, 4}, {"Contrast", 1.0F, 8}},    {{"Rotate", 0.8F, 8}, {"Color", 1.0F, 2}},
    {{"Color", 0.8F, 8}, {"Solarize", 0.8F, 7}},    {{"Sharpness", 0.4F, 7}, {"Invert", 0.6F, 0}},
    {{"ShearX", 0.6F, 5}, {"Equalize", 1.0F, 0}},   {{"Color", 0.4F, 0}, {"Equalize", 0.6F, 0}},
    {{"Equalize", 0.4F, 0}, {"Solarize", 0.2F, 4}}, {{"Solarize", 0.6F, 5}, {"AutoContrast", 0.6F, 0}},
    {{"Invert", 0.6F, 0}, {"Equalize", 1.0F, 0}},   {{"Color", 0.6F, 4}, {"Contrast", 1.0F, 8}},
    {{"Equalize", 0.8F, 0}, {"Equalize", 0.6F, 0}}};

constexpr SubPolicy kCifar10[] = {
    {{"Invert", 0.1F, 0}, {"Contrast", 0.2F, 6}},        {{"Rotate", 0.7F, 2}, {"TranslateX", 0.3F, 9}},
    {{"Sharpness", 0.8F, 1}, {"Sharpness", 0.9F, 3}},    {{"ShearY", 0.5F, 8}, {"TranslateY", 0.7F, 9}},
    {{"AutoContrast", 0.5F, 0}, {"Equalize", 0.9F, 0}},  {{"ShearY", 0.2F, 7}, {"Posterize", 0.3F, 7}},
    {{"Color", 0.4F, 3}, {"Brightness", 0.6F, 7}},       {{"Sharpness", 0.3F, 9}, {"Brightness", 0.7F, 9}},
    {{"Equalize", 0.6F, 0}, {"Equalize", 0.5F, 0}},      {{"Contrast", 0.6F, 7}, {"Sharpness", 0.6F, 5}},
    {{"Color", 0.7F, 7}, {"TranslateX", 0.5F, 8}},       {{"Equalize", 0.3F, 0}, {"AutoContrast", 0.4F, 0}},
    {{"TranslateY", 0.4F, 3}, {"Sharpness", 0.2F, 6}},   {{"Brightness", 0.9F, 6}, {"Color", 0.2F, 8}},
    {{"Solarize", 0.5F, 2}, {"Invert", 0.0F, 0}},        {{"Equalize", 0.2F, 0}, {"AutoContrast", 0.6F, 0}},
    {{"Equalize", 0.2F, 0}, {"Equalize", 0.6F, 0}},      {{"Color", 0.9F, 9}, {"Equalize", 0.6F, 0}},
    {{"AutoContrast", 0.8F, 0}, {"Solarize", 0.2F, 8}},  {{"Brightness", 0.1F, 3}, {"Color", 0.7F, 0}},
    {{"Solarize", 0.4F, 5}, {"AutoContrast", 0.9F, 0}},  {{"TranslateY", 0.9F, 9}, {"TranslateY", 0.7F, 9}},
    {{"AutoContrast", 0.9F, 0}, {"Solarize", 0.8F, 3}},  {{"Equalize", 0.8F, 0}, {"Invert", 0.1F, 0}},
    {{"TranslateY", 0.7F, 9}, {"AutoContrast", 0.9F, 0}}};

constexpr SubPolicy kSvhn[] = {
    {{"ShearX", 0.9F, 4}, {"Invert", 0.2F, 0}},       {{"ShearY", 0.9F, 8}, {"Invert", 0.7F, 0}},
    {{"Equalize", 0.6F, 0}, {"Solarize", 0.6F, 6}},   {{"Invert", 0.9F, 0}, {"Equalize", 0.6F, 0}},
    {{"Equalize", 0.6F, 0}, {"Rotate", 0.9F, 3}},     {{"ShearX", 0.9F, 4}, {"AutoContrast", 0.8F, 0}},
    {{"ShearY", 0.9F, 8}, {"Invert", 0.4F, 0}},       {{"ShearY", 0.9F, 5}, {"Solarize", 0.2F, 6}},
    {{"Invert", 0.9F, 0}, {"AutoContrast", 0.8F, 0}}, {{"Equalize", 0.6F, 0}, {"Rotate", 0.9F, 3}},
    {{"ShearX", 0.9F, 4}, {"Solarize", 0.3F, 3}},     {{"ShearY", 0.8F, 8}, {"Invert", 0.7F, 0}},
    {{"Equalize", 0.9F, 0}, {"TranslateY", 0.6F, 6}}, {{"Invert", 0.9F, 0}, {"Equalize", 0.6F, 0}},
    {{"Contrast", 0.3F, 3}, {"Rotate", 0.8F, 4}},     {{"Invert", 0.8F, 0}, {"TranslateY", 0.0F, 2}},
    {{"ShearY", 0.7F, 6}, {"Solarize", 0.4F, 8}},     {{"Invert", 0.6F, 0}, {"Rotate", 0.8F, 4}},
    {{"ShearY", 0.3F, 7}, {"TranslateX", 0.9F, 3}},   {{"ShearX", 0.1F, 6}, {"Invert", 0.6F, 0}},
    {{"Solarize", 0.7F, 2}, {"TranslateY", 0.6F, 7}}, {{"ShearY", 0.8F, 4}, {"Invert", 0.8F, 0}},
    {{"ShearX", 0.7F, 9}, {"TranslateY", 0.8F, 3}},   {{"ShearY", 0.8F, 5}, {"AutoContrast", 0.7F, 0}},
    {{"ShearX", 0.7F, 2}, {"Invert", 0.1F, 0}}};

}  // namespace

std::span<const SubPolicy> sub_policies(steps::AugmentPolicy policy) {
  switch (policy) {
    case steps::AugmentPolicy::kImageNet:
      return kImageNet;
    case steps::AugmentPolicy::kCifar10:
      return kCifar10;
    case steps::AugmentPolicy::kSvhn:
      return kSvhn;
  }
  return kImageNet;
}

}  // namespace millrace
