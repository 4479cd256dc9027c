#include "daemon/backend/fpga/fpga_backend.h"

#include <algorithm>
#include <string>
#include <utility>

#include "daemon/observe/log.h"

namespace millrace {
namespace {

using Clock = std::chrono::steady_clock;
using Backends = std::vector<std::unique_ptr<Backend>>;

constexpr std::uint64_t kPage = FpgaStaging::kPage;

// Files are a third of it: photographs of 110 KB make tensors of 150 KB and more.
FpgaStaging staging_of(const FpgaSettings& settings) {
  const std::uint64_t lane = settings.staging.count / settings.lanes;
  return {.encoded_bytes = lane / 3 / kPage * kPage, .tensor_bytes = lane / 3 * 2 / kPage * kPage};
}

FpgaWorkerOrder order_of(const FpgaSettings& settings) {
  return {.lanes = settings.lanes,
          .staging = staging_of(settings),
          .hang = settings.hang,
          .images = fpga_images(settings.images)};
}

Result<std::vector<Card>> chosen(std::vector<Card> all, const std::vector<std::string>& names) {
  if (names.empty()) return all;
  std::vector<Card> cards;
  for (const std::string& name : names) {
    std::size_t at = 0;
    while (at < all.size() && name != all[at].place && name != std::to_string(at)) ++at;
    if (at == all.size()) {
      std::string there;
      for (const Card& card : all) there += (there.empty() ? "" : ", ") + card.place;
      return Error{Code::kInvalid, "fpga.devices: there is no card " + name + "; there are " + there};
    }
    const bool twice = std::any_of(cards.begin(), cards.end(), [&](const Card& c) { return c.place == all[at].place; });
    if (twice) return Error{Code::kInvalid, "fpga.devices: " + name + " is a card that is named twice"};
    cards.push_back(all[at]);
  }
  return cards;
}

std::array<bool, kFpgaImages> images_of(const Card& card) {
  std::array<bool, kFpgaImages> there{};
  for (std::size_t i = 0; i < kFpgaImages; ++i) there[i] = !card.images[i].uuid.empty();
  return there;
}

BackendInfo info_of(const Card& card, std::uint32_t number, const FpgaSettings& settings) {
  BackendInfo info{.name = "fpga:" + std::to_string(number),
                   .device = card.shell,
                   .detail = "at " + card.place + ", XRT " + card.library,
                   .lanes = settings.lanes,
                   .formats = {ImageFormat::kJpeg},
                   .properties = {{"staging", to_text(settings.staging) + " of the host's memory"}},
                   .copies_files = true};
  constexpr const char* kNames[kFpgaImages] = {"jpeg", "packed"};
  for (std::size_t i = 0; i < kFpgaImages; ++i) {
    const Card::Image& image = card.images[i];
    if (image.uuid.empty()) continue;
    const std::string units = std::to_string(image.units) + (image.units == 1 ? " compute unit" : " compute units");
    info.properties.emplace_back(std::string("image ") + kNames[i], units + ", uuid " + image.uuid);
  }
  return info;
}

}  // namespace

bool wants_fpga(const Settings& settings) {
  return settings.groups.of<FpgaSettings>().wanted != Wanted::kNo;
}

HostMemory fpga_host_memory(const Settings& settings) {
  return {fpga_staging(settings.groups.of<FpgaSettings>()), "fpga.staging for each card"};
}

// A card that will not do is left out, with words, unless it was named; one that only cannot be had now begins as lost.
Result<Backends> make_fpga_backends(const Settings& settings, const BackendServices& services) {
  const FpgaSettings& fpga = settings.groups.of<FpgaSettings>();
  const auto without = [&](const Error& why) -> Result<Backends> {
    if (fpga.wanted != Wanted::kAuto) return Error{Code::kInvalid, "backends.fpga = \"yes\": " + why.message};
    log_info("backends.fpga = \"auto\": " + why.message);
    return Backends();
  };
  Result<std::vector<Card>> all = list_cards(fpga_program(fpga.worker), fpga_images(fpga.images));
  if (!all) return without(all.error());
  MILLRACE_TRY(const std::vector<Card> cards, chosen(*std::move(all), fpga.devices));
  const auto has_image = [](const Card& card) {
    const auto images = images_of(card);
    return std::find(images.begin(), images.end(), true) != images.end();
  };
  if (!std::all_of(cards.begin(), cards.end(), has_image)) {
    const std::string& remark = cards.front().remark;
    return without({Code::kUnsupported, "no image for cards in " + fpga_images(fpga.images) + " (fpga.images): " +
                                            (remark.empty() ? "neither jpeg.xclbin nor packed.xclbin" : remark)});
  }
  if (!cards.empty() && !cards.front().remark.empty()) log_warning("fpga.images: " + cards.front().remark);
  std::vector<std::unique_ptr<FpgaBackend>> begun;  // all come up at once
  for (const Card& card : cards) {
    MILLRACE_TRY(std::unique_ptr<FpgaBackend> backend,
                 FpgaBackend::begin(card, static_cast<std::uint32_t>(begun.size()), fpga, services));
    begun.push_back(std::move(backend));
  }
  Backends backends;
  Error last{Code::kUnsupported, "there is no card"};
  for (std::size_t i = 0; i < begun.size(); ++i) {
    const Result<void> up = begun[i]->wait_until_begun();
    if (up) {
      backends.push_back(std::move(begun[i]));
      continue;
    }
    last = up.error().within("the card at " + cards[i].place);
    if (!fpga.devices.empty()) return without(last);
    if (cards.size() > 1) log_warning(last.message + "; it is left out");
  }
  return backends.empty() ? without(last) : Result<Backends>(std::move(backends));
}

Result<std::unique_ptr<FpgaBackend>> FpgaBackend::begin(const Card& card, std::uint32_t number,
                                                        const FpgaSettings& settings, const BackendServices& services) {
  std::unique_ptr<FpgaBackend> backend(new FpgaBackend(card, number, settings, services));
  MILLRACE_TRY_VOID(backend->device_.begin());
  return backend;
}

FpgaBackend::FpgaBackend(const Card& card, std::uint32_t number, const FpgaSettings& settings,
                         const BackendServices& services)
    : info_(info_of(card, number, settings)),
      staging_(staging_of(settings)),
      choice_(images_of(card), settings.swap, Clock::now()),
      figures_(services.counters, info_.name),
      device_({.what = "card",
               .thread = "mr-fpga",
               .start = [this, program = fpga_program(settings.worker), place = card.place,
                         order = order_of(settings)]() -> Result<std::shared_ptr<device_host::HostProcess>> {
                 MILLRACE_TRY(std::shared_ptr<FpgaWorker> worker,
                              FpgaWorker::start(program, place, order, choice_.now(),
                                                [this] { choice_.forget(choice_.now().image, Clock::now()); }));
                 return std::shared_ptr<device_host::HostProcess>(std::move(worker));
               }}),
      parts_{device_, choice_, staging_, settings.hang, figures_},
      lanes_(
          device_, info_.lanes, queue_depth().jobs, "mr-fpga-", services.limits,
          [this](std::uint32_t lane, const DecodeJob& job, const SampleLimits& limits,
                 const std::function<bool()>& stopped) { return FpgaLane(parts_, lane).run(job, limits, stopped); }) {}

// Of a sample that the card could make if it were programmed for it, that is noted. One that nobody else may make has it
// programmed, unless it can be made of the file.
Result<void> FpgaBackend::can_make(const SampleFacts& facts, const Recipe& recipe) const {
  MILLRACE_TRY(const FpgaImage with, fpga_can_make(facts, recipe, staging_));
  if (choice_.wants(with, Clock::now())) return {};
  const bool takes_file = with == FpgaImage::kPacked && !facts.source.has.passes && choice_.is_there(FpgaImage::kJpeg);
  if (facts.pinned && (takes_file || choice_.insists(with, Clock::now()))) return {};
  if (choice_.is_there(with)) return Error{Code::kUnsupported, "the card is programmed for other images now"};
  return Error{Code::kUnsupported, with == FpgaImage::kPacked ? "the card has no image for packed coefficients"
                                                              : "the card has no image for files"};
}

void FpgaBackend::shutdown() {
  lanes_.shutdown([this] { device_.stop(); });
}

}  // namespace millrace
