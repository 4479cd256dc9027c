#include "tests/system/support/raw_mill.h"

#include <limits>

#include "tests/support/pictures/image_folder.h"

namespace millrace {
namespace {

void set_size(v1::Size& size) {
  size.set_width(32);
  size.set_height(32);
}

const float kNan = std::numeric_limits<float>::quiet_NaN();

}  // namespace

RawMill::RawMill()
    : paths(write_image_folder(pictures, {.images = 8, .classes = 2})), daemon({.roots = {folder.path()}}) {}

v1::ClientMessage RawMill::submit(std::uint64_t batch) const {
  v1::ClientMessage message;
  v1::Submit& request = *message.mutable_submit();
  request.set_batch_id(batch);
  for (const std::string& path : paths) request.add_samples()->set_path(path);
  set_size(*request.mutable_recipe()->mutable_resize()->mutable_exact());
  return message;
}

v1::ClientMessage RawMill::open_dataset(std::uint64_t dataset) const {
  v1::ClientMessage message;
  message.mutable_open_dataset()->set_dataset_id(dataset);
  message.mutable_open_dataset()->set_path(pictures);
  return message;
}

v1::ClientMessage RawMill::start_epoch(std::uint64_t stream, std::uint64_t dataset) {
  v1::ClientMessage message;
  v1::StartEpoch& request = *message.mutable_start_epoch();
  request.set_stream_id(stream);
  request.set_dataset_id(dataset);
  request.set_batch_size(4);
  set_size(*request.mutable_recipe()->mutable_resize()->mutable_exact());
  return message;
}

v1::ClientMessage release_of(const v1::TensorHandle& handle) {
  v1::ClientMessage message;
  message.mutable_release()->set_slot(handle.slot());
  message.mutable_release()->set_generation(handle.generation());
  return message;
}

v1::ClientMessage attach_with(const std::string& ticket) {
  v1::ClientMessage message;
  message.mutable_attach()->set_ticket(ticket);
  return message;
}

v1::OpenSessionRequest open_with(const std::string& ticket) {
  v1::OpenSessionRequest request;
  request.set_ticket(ticket);
  request.set_slots(1);
  request.set_slot_bytes(4096);
  return request;
}

const std::vector<Malformed>& malformed_submits() {
  static const std::vector<Malformed> all{
      {"samples: ", [](v1::Submit& s) { s.clear_samples(); }},
      {"samples[2].source: ", [](v1::Submit& s) { s.mutable_samples(2)->clear_source(); }},
      {"samples[0].path: ", [](v1::Submit& s) { s.mutable_samples(0)->set_path("relative/path.jpg"); }},
      {"samples[0].path: ", [](v1::Submit& s) { s.mutable_samples(0)->set_path(""); }},
      {"samples[0].path: ", [](v1::Submit& s) { s.mutable_samples(0)->set_path("/" + std::string(5000, 'x')); }},
      {"samples[0].path: ", [](v1::Submit& s) { s.mutable_samples(0)->set_path(std::string("/a\0b", 4)); }},
      {"samples[1].ring.length: ", [](v1::Submit& s) { s.mutable_samples(1)->mutable_ring(); }},
      {"samples[3].box.width: ", [](v1::Submit& s) { s.mutable_samples(3)->mutable_box()->set_height(4); }},
      {"samples", [](v1::Submit& s) { s.mutable_samples(0)->set_encoded(std::string((1 << 20) + 1, 'x')); }},
      {"recipe.flip_probability: ", [](v1::Submit& s) { s.mutable_recipe()->set_flip_probability(1.5F); }},
      {"recipe.flip_probability: ", [](v1::Submit& s) { s.mutable_recipe()->set_flip_probability(kNan); }},
      {"recipe.resize.exact.width: ",
       [](v1::Submit& s) { s.mutable_recipe()->mutable_resize()->mutable_exact()->set_width(0); }},
      {"recipe.resize.filter: ",
       [](v1::Submit& s) { s.mutable_recipe()->mutable_resize()->set_filter(static_cast<v1::Filter>(99)); }},
      {"recipe.dtype: ", [](v1::Submit& s) { s.mutable_recipe()->set_dtype(static_cast<v1::DType>(77)); }},
      {"recipe.normalise", [](v1::Submit& s) { s.mutable_recipe()->mutable_normalise()->add_mean(0.5F); }},
      {"recipe.crop.random_resized.min_scale: ",
       [](v1::Submit& s) { s.mutable_recipe()->mutable_crop()->mutable_random_resized()->set_min_scale(-1); }},
      {"on_error: ", [](v1::Submit& s) { s.set_on_error(static_cast<v1::OnError>(9)); }},
      {"priority: ", [](v1::Submit& s) { s.set_priority(static_cast<v1::Priority>(-3)); }},
      {"fidelity: ", [](v1::Submit& s) { s.set_fidelity(static_cast<v1::Fidelity>(5)); }},
      {"backend: ", [](v1::Submit& s) { s.set_backend("Not A Name!"); }},
      {"backend: ", [](v1::Submit& s) { s.set_backend("\xff\xfe"); }},
  };
  return all;
}

}  // namespace millrace
