#include "client/cli/convert/converter.h"

#include <unistd.h>

#include <cerrno>
#include <optional>

#include "client/cli/convert/names.h"
#include "client/cli/interrupt.h"

namespace millrace::cli {
namespace {

// No target makes a larger file.
constexpr std::uint64_t kMostThere = std::uint64_t{1} << 33;

Error taken(const std::string& path) {
  return Error{Code::kPrecondition,
               path +
                   " is there already, and is something else: it was not written over. Move it away, or name "
                   "another folder to fill"};
}

// Another file would fare no better.
bool ends_all(const Error& error) {
  return error.code == Code::kExhausted || (error.code == Code::kInternal && error.message.starts_with("writing "));
}

}  // namespace

Converted Converter::convert(const TreeFolder& folder, const TreeFile& file) {
  const std::string path = joined(joined(plan_.from, folder.path), file.name);
  const auto failed = [](Error error) {
    if (error.code == Code::kCancelled) return Converted{.became = Became::kStopped};
    const Became became = ends_all(error) ? Became::kStopped : Became::kFailed;
    return Converted{.became = became, .error = std::move(error)};
  };
  auto source = SourceFile::open(path);
  if (!source) return failed(source.error());
  auto done = make(*source, folder, file);
  if (!done) return failed(std::move(done).error());
  if (!plan_.delete_converted || file.by_link) return *done;
  if (!is_still(path, source->status()))
    return failed({Code::kUnavailable, path + " changed after it was read: it was not deleted"});
  if (::unlink(path.c_str()) != 0) return failed(errno_error("deleting " + path, errno));
  done->deleted = true;
  return *done;
}

Result<Converted> Converter::make(SourceFile& source, const TreeFolder& folder, const TreeFile& file) {
  if (!target_->takes(file.name) || source.size() > plan_.to.most_bytes) return copy(folder, file, plan_.to.not_taken);
  MILLRACE_TRY_VOID(source.read(source_));
  const Result<Made> made = target_->make({file.name, folder.files}, source_, made_);
  if (!made) {
    const std::string path = joined(joined(plan_.from, folder.path), file.name);
    return Error{made.error().code, path + ' ' + made.error().message};
  }
  if (made->name.empty()) return copy(folder, file, made->why);
  Converted done{.became = Became::kConverted, .bytes_read = source.size(), .bytes_written = made_.size()};
  const std::string into = joined(plan_.into, folder.path), path = joined(into, made->name);
  MILLRACE_TRY(const bool fresh, place(made_, into, made->name, source.status()));
  done.was_there = !fresh;
  if ((!fresh || plan_.delete_converted) && !has_made(path)) return taken(path);
  return done;
}

Result<Converted> Converter::copy(const TreeFolder& folder, const TreeFile& file, WhyCopied why) {
  const std::string into = joined(plan_.into, folder.path), target = joined(into, file.name);
  const std::string path = joined(joined(plan_.from, folder.path), file.name);
  MILLRACE_TRY(SourceFile source, SourceFile::open(path));
  MILLRACE_TRY(const bool fresh, place_copy(source, into, file.name));
  Converted done{.became = Became::kCopied,
                 .why = why,
                 .was_there = !fresh,
                 .bytes_read = source.size(),
                 .bytes_written = source.size()};
  if (done.was_there || plan_.delete_converted) {
    MILLRACE_TRY(const bool equal, equal_files(path, target));
    if (!equal) return taken(target);
  }
  return done;
}

// false: something of this name is there.
Result<bool> Converter::place(const std::vector<std::uint8_t>& bytes, const std::string& folder,
                              const std::string& name, const struct stat& like) {
  if (::access(joined(folder, name).c_str(), F_OK) == 0) return false;
  MILLRACE_TRY(NewFile file, NewFile::create(folder, name));
  MILLRACE_TRY_VOID(file.write(bytes));
  return file.publish(like, sync());
}

Result<bool> Converter::place_copy(SourceFile& source, const std::string& folder, const std::string& name) {
  if (::access(joined(folder, name).c_str(), F_OK) == 0) return false;
  MILLRACE_TRY(NewFile file, NewFile::create(folder, name));
  for (;;) {
    MILLRACE_TRY_VOID(source.read_piece(there_));
    if (there_.empty()) break;
    if (interrupted()) return Error{Code::kCancelled, ""};
    MILLRACE_TRY_VOID(file.write(there_));
  }
  MILLRACE_TRY_VOID(source.check_unchanged());
  return file.publish(source.status(), sync());
}

// Whether the file on the disk is what the target made, or as good as that.
bool Converter::has_made(const std::string& path) {
  auto there = SourceFile::open(path);
  return there && there->size() <= kMostThere && there->read(there_) && target_->is_of_last(there_);
}

Result<bool> Converter::equal_files(const std::string& a, const std::string& b) {
  MILLRACE_TRY(SourceFile first, SourceFile::open(a));
  MILLRACE_TRY(SourceFile second, SourceFile::open(b));
  if (first.size() != second.size()) return false;
  for (;;) {
    if (interrupted()) return Error{Code::kCancelled, ""};
    MILLRACE_TRY_VOID(first.read_piece(there_));
    MILLRACE_TRY_VOID(second.read_piece(back_));
    if (there_ != back_) return false;
    if (there_.empty()) return true;
  }
}

}  // namespace millrace::cli
