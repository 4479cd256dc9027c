#include "daemon/backend/fpga/fpga_worker.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

namespace millrace {
namespace {

namespace fs = std::filesystem;
using device_host::Channel;
using device_host::Clock;
using device_host::Heard;
using device_host::Staging;

constexpr std::chrono::seconds kPatienceWithList{20};
constexpr std::size_t kMostCards = 64;
constexpr char kProgram[] = "millrace-fpga";
static_assert(fpga_lane_staging(kMostFpgaLanes - 1) < device_host::kAbove);

Error other_version() {
  return {Code::kUnsupported, "millrace-fpga is of another version than this daemon: restart the daemon"};
}

template <std::size_t kSize>
void put_text(char (&to)[kSize], const std::string& text) {
  std::memcpy(to, text.data(), std::min(text.size(), kSize - 1));
}

Card card_of(const FpgaReady& ready) {
  Card card{.place = device_host::text_of(ready.card),
            .shell = device_host::text_of(ready.shell),
            .library = device_host::text_of(ready.library),
            .images = {},
            .remark = device_host::text_of(ready.text)};
  for (std::uint32_t i = 0; i < kFpgaImages; ++i)
    card.images[i] = {.uuid = device_host::text_of(ready.images[i].uuid), .units = ready.images[i].units};
  return card;
}

// What it says until the list ends.
Result<std::vector<Card>> hear_cards(int control) {
  std::vector<Card> cards;
  const Clock::time_point until = Clock::now() + kPatienceWithList;
  for (;;) {
    FpgaReady ready;
    const Heard heard = device_host::receive(control, ready, until);
    if (heard == Heard::kLate)
      return Error{Code::kUnsupported, "XRT does not say within 20 seconds which cards there are"};
    if (heard == Heard::kEnd)
      return Error{Code::kUnsupported, "millrace-fpga ended before it had said which cards there are"};
    if (ready.code == kFpgaListEnds) return cards;
    if (ready.version != kFpgaWireVersion) return other_version();
    if (ready.code != 0) return device_host::error_of(ready.code, ready.text, kProgram);
    if (cards.size() == kMostCards) return Error{Code::kUnsupported, "millrace-fpga tells of more cards than can be"};
    cards.push_back(card_of(ready));
  }
}

Result<FpgaHello> hello_of(FpgaWork work, const std::string& images) {
  FpgaHello hello{.work = work};
  if (images.size() >= sizeof hello.images)
    return Error{Code::kInvalid, "fpga.images: the path is too long, at most 511 bytes"};
  put_text(hello.images, images);
  return hello;
}

}  // namespace

std::string fpga_program(const std::string& path) {
  return device_host::find_program(path, kProgram);
}

std::string fpga_images(const std::string& path) {
  if (!path.empty()) return path;
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  const fs::path installed = folder / "../lib/millrace/fpga";
  return (fs::exists(installed, error) ? installed : folder / "../fpga").lexically_normal().string();
}

Result<std::vector<Card>> list_cards(const std::string& program, const std::string& images) {
  std::error_code error;
  if (!fs::exists(program, error))
    return Error{Code::kUnsupported,
                 "there is no " + program + ": install the package millrace-fpga, or build with XRT (libxrt-dev)"};
  MILLRACE_TRY(const FpgaHello hello, hello_of(FpgaWork::kList, images));
  MILLRACE_TRY(Channel channel, device_host::make_channel(kProgram));
  const device_host::Handed control[] = {{channel.theirs.get(), kFpgaControl}};
  MILLRACE_TRY(const pid_t pid, device_host::start_process(program, control));
  channel.theirs.reset();
  Result<std::vector<Card>> cards = device_host::send_to(channel.ours.get(), hello)
                                        ? hear_cards(channel.ours.get())
                                        : Error{Code::kUnsupported, program + " ended as it began"};
  device_host::reap(pid);
  return cards;
}

Result<FpgaDone> FpgaLaneChannel::ask(FpgaBatch& batch, std::chrono::milliseconds patience) {
  batch.number = ++asked_;
  if (!device_host::send_to(socket_.get(), batch))
    return Error{Code::kUnavailable, "the process that has the card is gone"};
  FpgaDone done;
  const Clock::time_point begun = Clock::now();
  const Heard heard = device_host::receive(socket_.get(), done, begun + patience);
  if (heard == Heard::kLate)
    return Error{Code::kUnavailable, "the card does not answer within " + std::to_string(patience.count()) + " ms"};
  if (heard == Heard::kEnd || done.number != batch.number)
    return Error{Code::kUnavailable, "the process that has the card ended"};
  if (done.code != 0) return device_host::error_of(done.code, done.text, kProgram);
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begun).count();
  done.busy_microseconds = std::min(done.busy_microseconds, static_cast<std::uint64_t>(took));
  done.moved_bytes = std::min(done.moved_bytes, 2 * layout_.size());
  done.celsius = std::clamp(done.celsius, 0, 1000);
  done.milliwatts = std::clamp(done.milliwatts, 0, 10'000'000);
  return done;
}

Result<std::shared_ptr<FpgaWorker>> FpgaWorker::start(const std::string& program, const std::string& card,
                                                      const FpgaWorkerOrder& order, const ImageChoice::Choice& begin,
                                                      std::function<void()> refused) {
  MILLRACE_TRY(FpgaHello hello, hello_of(FpgaWork::kServe, order.images));
  put_text(hello.card, card);
  hello.lanes = order.lanes;
  hello.hang_milliseconds = static_cast<std::uint32_t>(order.hang.count());
  hello.encoded_bytes = order.staging.encoded_bytes;
  hello.tensor_bytes = order.staging.tensor_bytes;
  hello.image = begin.image;
  hello.swap = begin.swap;
  MILLRACE_TRY(Channel control, device_host::make_channel(kProgram));
  std::vector<device_host::Handed> handed{{control.theirs.get(), kFpgaControl}};
  std::vector<UniqueFd> theirs;
  std::vector<FpgaLaneChannel> lanes;
  for (std::uint32_t i = 0; i < order.lanes; ++i) {
    MILLRACE_TRY(Channel channel, device_host::make_channel(kProgram));
    MILLRACE_TRY(Staging staging, Staging::create(kProgram, Bytes{order.staging.size()}));
    handed.push_back({channel.theirs.get(), fpga_lane_socket(i)});
    handed.push_back({theirs.emplace_back(staging.take_descriptor()).get(), fpga_lane_staging(i)});
    lanes.emplace_back(std::move(channel.ours), std::move(staging), order.staging);
    theirs.push_back(std::move(channel.theirs));
  }
  MILLRACE_TRY(const pid_t pid, device_host::start_process(program, handed));
  return std::shared_ptr<FpgaWorker>(
      new FpgaWorker(std::move(control.ours), std::move(lanes), pid, hello, std::move(refused)));
}

FpgaWorker::FpgaWorker(UniqueFd control, std::vector<FpgaLaneChannel> lanes, pid_t pid, const FpgaHello& hello,
                       std::function<void()> refused)
    : HostProcess(std::move(control), pid), lanes_(std::move(lanes)), hello_(hello), refused_(std::move(refused)) {}

Result<void> FpgaWorker::greet(std::chrono::milliseconds patience) {
  FpgaReady ready;
  const Heard heard = device_host::send_to(control(), hello_)
                          ? device_host::receive(control(), ready, Clock::now() + patience)
                          : Heard::kEnd;
  if (heard == Heard::kLate)
    return Error{Code::kUnavailable,
                 "millrace-fpga does not come up within " + std::to_string(patience.count() / 1000) + " seconds"};
  if (heard == Heard::kEnd) return Error{Code::kUnavailable, "millrace-fpga ended as it began"};
  if (ready.version != kFpgaWireVersion) return other_version();
  if (ready.code == 0) return {};
  const Error why = device_host::error_of(ready.code, ready.text, kProgram);
  if (why.code != Code::kNotFound) return why;
  refused_();
  return Error{Code::kUnavailable, why.message};
}

}  // namespace millrace
