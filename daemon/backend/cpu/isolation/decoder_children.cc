#include "daemon/backend/cpu/isolation/decoder_children.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <thread>

#include "proto/base/printable.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kBeside = 1 << 20;                // beside what a picture's size says: margins, narrow pictures
constexpr Bytes kOwnData{DecoderChild::kData.count / 2};  // what a process takes before it decodes
constexpr std::uint32_t kSpareSeconds = 5;

std::uint64_t area(kernels::Size size) {
  return static_cast<std::uint64_t>(size.width) * static_cast<std::uint64_t>(size.height);
}

// The most that the format's decoder asks of its buffer, so that its rows end up where the lane reads them.
Bytes room_for_pixels(ImageFormat format, const DecodeRequest& request) {
  const auto width = static_cast<std::uint64_t>(request.stored.width);
  const auto rows =
      static_cast<std::uint64_t>(format == ImageFormat::kWebp ? request.stored.height : request.box.height + 1);
  return {width * rows * (format == ImageFormat::kJpeg ? 4 : 3)};
}

// Of three components at full size, padded to MCUs, a block in 160 bytes, which is more than it can take.
Bytes room_for_packed(kernels::Size size) {
  const auto blocks = [](int side) { return static_cast<std::uint64_t>(side / 16 + 1) * 2; };
  return {blocks(size.width) * blocks(size.height) * 3 * 160 + kBeside};
}

// Where the header does not say what the library takes, what it takes of any picture of this size (libjpeg.cc).
Bytes data_of(const DecodeRequest& request) {
  const Bytes unknown{(std::uint64_t{64} << 20) + 12 * area(request.stored)};
  return kOwnData + (request.codec.count > 0 ? request.codec : unknown);
}

DecoderRequest wire_request(DecoderWork work, ImageFormat format, const DecodeRequest& request) {
  return {.codec = request.codec.count,
          .width = request.stored.width,
          .height = request.stored.height,
          .box_left = request.box.left,
          .box_top = request.box.top,
          .box_width = request.box.width,
          .box_height = request.box.height,
          .reduction = request.reduction,
          .work = work,
          .format = static_cast<std::uint8_t>(format),
          .target = static_cast<std::uint8_t>(request.target),
          .indices = static_cast<std::uint8_t>(request.indices ? 1 : 0)};
}

Error nonsense() {
  return {Code::kInvalid, "the decoder's answer about this file makes no sense"};
}

// What the process says went wrong; a code that is none of a decoder's is nonsense.
Error error_in(const DecoderReply& reply_untrusted) {
  const char* const begin = reply_untrusted.text;
  const char* const end = std::find(begin, std::end(reply_untrusted.text), '\0');
  const std::string text = printable(std::string_view(begin, static_cast<std::size_t>(end - begin)));
  for (const Code code : {Code::kInvalid, Code::kUnsupported, Code::kDeadline, Code::kExhausted, Code::kInternal}) {
    if (reply_untrusted.code == static_cast<std::uint32_t>(code)) return {code, text};
  }
  return nonsense();
}

// The box's pixels, if all of their rows lie within the room, slack included.
Result<kernels::U8View> view_of(const DecoderReply& reply_untrusted, const DecoderRequest& request,
                                const std::uint8_t* memory) {
  const std::uint64_t begin = request.room_at + PixelBuffer::kSlack;
  const std::uint64_t end = request.room_at + request.room - PixelBuffer::kSlack;
  const DecoderReply& reply = reply_untrusted;
  if (reply.channels != 1 && reply.channels != 3) return nonsense();
  if (reply.at < begin || reply.at > end || reply.stride < 0) return nonsense();
  const auto row = static_cast<std::uint64_t>(request.box_width) * static_cast<std::uint64_t>(reply.channels);
  const auto stride = static_cast<std::uint64_t>(reply.stride), left = end - reply.at;
  const auto steps = static_cast<std::uint64_t>(request.box_height) - 1;
  if (stride < row || row > left || (steps > 0 && stride > (left - row) / steps)) return nonsense();
  return kernels::U8View{memory + reply.at, request.box_width, request.box_height, reply.channels,
                         static_cast<std::ptrdiff_t>(stride)};
}

void set_bounds(DecoderProgram& program) {
  const SampleLimits limits = program.limits.now().sample;
  const auto side = static_cast<int>(std::min<std::uint64_t>(limits.side, 1 << 20));
  const std::uint64_t narrow = room_for_packed({side, 1}).count + room_for_packed({1, side}).count;
  program.reach = limits.encoded.count + 9 * limits.pixels + narrow + 4 * std::uint64_t{limits.side} + kBeside;
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(limits.time + DecoderChildren::kMostWork).count();
  program.cpu_seconds = static_cast<std::uint32_t>(seconds) + kSpareSeconds;
}

// Above the descriptors that a process of it gets.
Result<std::shared_ptr<const UniqueFd>> opened_program(const std::string& path) {
  const UniqueFd low(open(path.c_str(), O_PATH | O_CLOEXEC));
  UniqueFd file(low ? fcntl(low.get(), F_DUPFD_CLOEXEC, kDecoderProgram + 1) : -1);
  if (!file)
    return Error{Code::kInvalid, "cpu.isolation = \"process\": " + errno_error("opening " + path, errno).message +
                                     "; see cpu.decoder, or set cpu.isolation = \"none\""};
  return std::make_shared<const UniqueFd>(std::move(file));
}

}  // namespace

Result<DecoderProgram> decoder_program(const std::string& path, const InForce<Limits>& limits) {
  DecoderProgram program{.path = path, .limits = limits};
  if (path.empty()) {
    std::error_code error;
    const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
    program.path = folder / "millrace-decoder";
    if (!fs::exists(program.path, error)) program.path = folder / "../libexec/millrace/millrace-decoder";
  }
  set_bounds(program);
  MILLRACE_TRY(program.file, opened_program(program.path));
  const Result<std::unique_ptr<DecoderChild>> tried = DecoderChild::start(program);
  if (!tried)
    return Error{Code::kInvalid, "cpu.isolation = \"process\": " + tried.error().message +
                                     "; see cpu.decoder, or set cpu.isolation = \"none\""};
  return program;
}

// Where the host lacks what it takes, the lane's idle processes make way, and then it waits for a moment.
Result<std::unique_ptr<DecoderChild>> DecoderChildren::start_until(Clock::time_point deadline) {
  constexpr std::chrono::milliseconds kLongestPause{100};
  constexpr std::chrono::seconds kForgotten{2};
  for (std::chrono::milliseconds pause{5};; pause = std::min(2 * pause, kLongestPause)) {
    Result<std::unique_ptr<DecoderChild>> process = DecoderChild::start(program_);
    if (process) lacking_.reset();
    if (process || process.error().code != Code::kUnavailable) return process;
    children_.clear();
    const Clock::time_point now = Clock::now();
    if (!lacking_ || now - lacking_->last > kForgotten) lacking_ = Lacking{now, now};
    lacking_->last = now;
    const bool is_long = now - lacking_->since > kPatience;
    if (!is_long && now + pause < deadline) {
      std::this_thread::sleep_for(pause);
      continue;
    }
    return Error{is_long ? Code::kExhausted : Code::kUnavailable,
                 process.error().message +
                     ": no decoder process could be started, and nothing is wrong with the image; give the "
                     "daemon more (TasksMax=, LimitNOFILE=, memory)"};
  }
}

Result<DecoderChild*> DecoderChildren::start_for(std::uint32_t user, Clock::time_point deadline) {
  children_.remove_if([&](const UsersChild& child) { return child.user == user; });
  if (children_.size() >= kMost) children_.pop_back();
  MILLRACE_TRY(std::unique_ptr<DecoderChild> process, start_until(std::min(deadline, Clock::now() + kMoment)));
  deaths_.started();
  process->tell_at_end(used_by_ended_);
  children_.push_front({user, std::move(process)});
  return children_.front().process.get();
}

Result<DecoderChild*> DecoderChildren::child_for(const DecodeRequest& request) {
  const Origin& origin = request.origin;
  if (!children_.empty() && children_.front().user != origin.user) children_.front().process->shrink({0});
  const auto found = std::find_if(children_.begin(), children_.end(),
                                  [&](const UsersChild& child) { return child.user == origin.user; });
  const bool is_new_wanted = origin.audience == Origin::Audience::kEverybody;
  if (found == children_.end() || (is_new_wanted && !found->process->is_fresh()))
    return start_for(origin.user, request.deadline.time());
  children_.splice(children_.begin(), children_, found);
  return found->process.get();
}

void DecoderChildren::follow_limits() {
  const std::uint64_t reach = program_.reach;
  const std::uint32_t seconds = program_.cpu_seconds;
  set_bounds(program_);
  if (program_.reach != reach || program_.cpu_seconds != seconds) children_.clear();
}

Result<DecoderChildren::Answered> DecoderChildren::ask(const Question& question) {
  const DecodeRequest& request = question.request;
  DecoderRequest asked = wire_request(question.work, question.format, request);
  follow_limits();
  if (request.bytes_untrusted.size() + question.room.count + kBeside > program_.reach) return memory_error();
  MILLRACE_TRY(DecoderChild * child, child_for(request));
  for (;;) {
    const bool was_fresh = child->is_fresh();
    MILLRACE_TRY(const DecoderAnswer answer,
                 child->ask(asked, request.bytes_untrusted, question.room, question.data, request.deadline));
    if (answer.end == DecoderAnswer::End::kAnswered) return Answered{answer.reply_untrusted, asked, child->memory()};
    children_.pop_front();
    if (answer.end == DecoderAnswer::End::kUnwanted) return deadline_error();
    deaths_.died(answer, question.format, request.origin.user);
    if (was_fresh || answer.end == DecoderAnswer::End::kLate) return death_error(answer);
    MILLRACE_TRY(child, start_for(request.origin.user, request.deadline.time()));
  }
}

Result<kernels::U8View> DecoderChildren::decode(ImageFormat format, const DecodeRequest& request, PixelBuffer&) {
  MILLRACE_TRY(const Answered answered,
               ask({DecoderWork::kDecode, format, request, room_for_pixels(format, request), data_of(request)}));
  if (answered.reply_untrusted.code != 0) return error_in(answered.reply_untrusted);
  return view_of(answered.reply_untrusted, answered.request, answered.memory);
}

Result<std::vector<std::uint8_t>> DecoderChildren::pack(const DecodeRequest& request, kernels::packed::Encoder&) {
  const Bytes room = room_for_packed(request.stored);
  MILLRACE_TRY(const Answered answered,
               ask({DecoderWork::kPack, ImageFormat::kJpeg, request, room, data_of(request) + room + room}));
  const DecoderReply& reply_untrusted = answered.reply_untrusted;
  if (reply_untrusted.code != 0) return error_in(reply_untrusted);
  if (reply_untrusted.at != answered.request.room_at || reply_untrusted.bytes > answered.request.room)
    return nonsense();
  const std::uint8_t* const begin = answered.memory + reply_untrusted.at;
  std::vector<std::uint8_t> packed(begin, begin + reply_untrusted.bytes);
  trim();
  return packed;
}

std::chrono::nanoseconds DecoderChildren::lap() {
  std::chrono::nanoseconds used = std::exchange(used_by_ended_, {});
  for (const UsersChild& child : children_) used += child.process->lap();
  return used;
}

// Of the last one used; the others were small when they were left.
void DecoderChildren::trim() {
  if (children_.empty()) return;
  DecoderChild& child = *children_.front().process;
  child.shrink(DecoderChild::kRoomKept);
  if (child.worked() > kMostWork || !child.is_small_again()) children_.pop_front();
}

}  // namespace millrace
