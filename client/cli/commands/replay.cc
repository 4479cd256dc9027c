// millrace replay: the tensor of a ticket once more, to the bit. What a training run saw can be looked at later, elsewhere.
#include <zlib.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "client/cli/connection.h"
#include "client/cli/options.h"
#include "client/cli/picture/png_file.h"
#include "client/cli/picture/to_pixels.h"
#include "proto/base/printable.h"
#include "proto/rpc/ticket_message.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLargestTicket = std::uint64_t{1} << 20;   // bytes
constexpr std::uint64_t kLargestTensor = std::uint64_t{16} << 30;  // bytes
constexpr std::uint64_t kBesideTensor = 4096;                      // bytes: more than a record and what aligns it

struct ReplayOptions {
  ConnectionOptions connection;
  std::string ticket;
  std::string file;  // instead of the ticket's path
  std::string picture;
  std::string raw;
};

// Absolute, without "..": as the daemon wants it.
std::string plain(const std::string& file) {
  return fs::absolute(file).lexically_normal().string();
}
std::string parent_of(const std::string& file) {
  return fs::path(plain(file)).parent_path().string();
}

Result<TensorTicket> read_ticket(const std::string& path) {
  std::error_code missing;
  const std::uint64_t size = fs::file_size(path, missing);
  if (missing) return errno_error(path, missing.value());
  if (size > kLargestTicket) return Error{Code::kInvalid, path + ": is too large to be a ticket"};
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  Result<TensorTicket> ticket = ticket_from_text(text);
  if (!ticket) return ticket.error().within(path);
  return ticket;
}

// Room for the tensor: by the recipe, or by the shape that the ticket tells.
Result<Bytes> room_for_tensor(const TensorTicket& ticket) {
  if (const std::optional<Bytes> fixed = slot_bytes_for(ticket.recipe, 1)) return *fixed;
  std::uint64_t bytes = dtype_bytes(ticket.recipe.dtype).count;
  for (const std::uint64_t side : ticket.shape) {
    if (side == 0 || bytes > kLargestTensor / side)
      return Error{Code::kInvalid, ticket.path + ": the ticket's shape is none of a tensor"};
    bytes *= side;
  }
  return Bytes{bytes + kBesideTensor};
}

std::string shape_text(const TensorTicket& ticket, Size size) {
  std::string text = std::to_string(size.width) + "x" + std::to_string(size.height) + " pixels, " +
                     std::string(dtype_name(ticket.recipe.dtype));
  return text + ", seed " + std::to_string(ticket.seed) + ", epoch " + std::to_string(ticket.epoch) + ", sample " +
         std::to_string(ticket.sample) + (ticket.recipe.views.empty() ? "" : ", view " + std::to_string(ticket.view));
}

Result<void> write_raw(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) return Error{Code::kInternal, path + ": could not be written"};
  return {};
}

std::uint32_t crc_of(std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

int replayed(const ReplayOptions& options, const TensorTicket& ticket, const TensorView& tensor) {
  const bool has_views = ticket.view < tensor.views().size();
  const Recipe& recipe = views_of(ticket.recipe)[ticket.view];
  const std::span<const std::byte> bytes = has_views ? tensor.views()[ticket.view].data : tensor.pixels(0);
  const Size size = has_views ? *fixed_size(recipe) : tensor.sample(0).size;
  if (!options.raw.empty()) {
    if (const auto written = write_raw(options.raw, bytes); !written) return report(written.error());
  }
  if (!options.picture.empty()) {
    const auto written = write_png(options.picture, to_picture(recipe, size, bytes));
    if (!written) return report(written.error());
  }
  const std::uint32_t crc = crc_of(bytes);
  const std::string what = printable(options.file) + ": " + shape_text(ticket, size);
  if (crc == ticket.crc32) {
    std::printf("%s: the same tensor, crc32 %08x\n", what.c_str(), crc);
    return kFine;
  }
  return report(Error{Code::kPrecondition,
                      what + ": another tensor than the ticket's: the file is another one than it "
                             "was, another version of Millrace makes other pixels of it, or it was written to before "
                             "the ticket was made"});
}

int replay(ReplayOptions options) {
  const Result<TensorTicket> ticket = read_ticket(options.ticket);
  if (!ticket) return report(ticket.error());
  if (options.file.empty()) options.file = ticket->path;
  if (!options.picture.empty() && ticket->recipe.patches)
    return report(Error{Code::kInvalid, "--output: this tensor is patches, no picture: use --raw"});
  const Result<Bytes> room = room_for_tensor(*ticket);
  if (!room) return report(room.error());
  auto connection = open_connection(options.connection, {parent_of(options.file)});
  if (!connection) return report(connection.error());
  auto session = connection->client.open_session(
      {.name = "millrace replay", .slots = 1, .batch = 1, .recipe = ticket->recipe, .slot_bytes = *room});
  if (!session) return report(session.error());
  BatchRequest request{.seed = ticket->seed, .epoch = ticket->epoch, .fidelity = ticket->fidelity};
  request.samples.push_back({.source = Path{plain(options.file)}, .id = ticket->sample});
  const auto submitted = session->submit(std::move(request));
  if (!submitted) return report(submitted.error());
  auto batch = session->wait(*submitted);
  if (!batch) return report(batch.error());
  if (batch->failure) return report(*batch->failure);
  return replayed(options, *ticket, batch->tensor);
}

}  // namespace

void add_replay(Command app, Chosen& chosen) {
  auto options = std::make_shared<ReplayOptions>();  // shared with the callback
  const Command command =
      app.subcommand("replay", "Make the tensor of a ticket again, to the bit, and say whether it is the same.");
  command.option("ticket", options->ticket, "a file that Batch.ticket(i).save(FILE) of the Python package wrote")
      .required()
      .check(existing_file());
  command.option("--file", options->file, "the image, where it is elsewhere than the ticket says");
  command.option("-o,--output", options->picture, "write it as a PNG file, normalisation undone");
  command.option("--raw", options->raw, "write the tensor's bytes");
  add_connection_options(command, options->connection);
  command.footer(
      "A ticket has the file's path, the recipe, and what its random choices were drawn from; a few hundred bytes of "
      "text.\n\n"
      "Examples:\n"
      "  millrace replay 17.ticket -o 17.png\n"
      "  millrace replay --private --file ~/copy/n0153.JPEG 17.ticket --raw 17.bin");
  command.callback([options, &chosen] { chosen = [options] { return replay(*options); }; });
}

}  // namespace millrace::cli
