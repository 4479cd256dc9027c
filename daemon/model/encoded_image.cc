#include "daemon/model/encoded_image.h"

#include <cstring>

namespace millrace {

EncodedBytes::EncodedBytes(std::size_t size) : data_(new std::byte[size + kReadSlack]), size_(size) {
  std::memset(data_.get() + size, 0, kReadSlack);
}

void EncodedBytes::shrink(std::size_t size) {
  if (!data_) return;
  size_ = size;
  std::memset(data_.get() + size, 0, kReadSlack);
}

}  // namespace millrace
