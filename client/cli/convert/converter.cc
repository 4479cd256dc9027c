#include "client/cli/convert/converter.h"

#include <unistd.h>

#include <cerrno>
#include <optional>

#include "client/cli/convert/names.h"
#include "client/cli/interrupt.h"

namespace millrace::cli {
namespace {

// A file that is larger is no picture.
constexpr std::uint64_t kMostJpeg = std::uint64_t{1} << 30;

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
  auto done = plan_.to == ConvertTo::kPacked ? pack(*source, folder, file) : unpack(*source, folder, file);
  if (!done) return failed(std::move(done).error());
  if (!plan_.delete_converted || file.by_link) return *done;
  if (!is_still(path, source->status()))
    return failed({Code::kUnavailable, path + " changed after it was read: it was not deleted"});
  if (::unlink(path.c_str()) != 0) return failed(errno_error("deleting " + path, errno));
  done->deleted = true;
  return *done;
}

Result<Converted> Converter::pack(SourceFile& source, const TreeFolder& folder, const TreeFile& file) {
  if (!is_jpeg_name(file.name) || source.size() > kMostJpeg) {
    MILLRACE_TRY(Converted copied, copy(folder, file));
    copied.why = NotPacked::kNoJpeg;
    return copied;
  }
  MILLRACE_TRY_VOID(source.read(source_));
  const PackedName name = packed_name(file.name, folder.files);
  const NotPacked why = packer_.pack(source_, name.ending, made_);
  if (why != NotPacked::kNothing) {
    MILLRACE_TRY(Converted copied, copy(folder, file));
    copied.why = why;
    return copied;
  }
  Converted done{.became = Became::kConverted, .bytes_read = source_.size(), .bytes_written = made_.size()};
  const std::string into = joined(plan_.into, folder.path), path = joined(into, name.name);
  MILLRACE_TRY(const bool fresh, place(made_, into, name.name, source.status()));
  done.was_there = !fresh;
  if ((!fresh || plan_.delete_converted) && !becomes(path, source_)) return taken(path);
  return done;
}

Result<Converted> Converter::unpack(SourceFile& source, const TreeFolder& folder, const TreeFile& file) {
  if (!is_packed_name(file.name)) return copy(folder, file);
  MILLRACE_TRY_VOID(source.read(source_));
  if (is_jpeg(source_)) {
    MILLRACE_TRY(Converted copied, copy(folder, file));
    copied.why = NotPacked::kNoPacked;
    return copied;
  }
  kernels::mrp::PackedFile packed;
  std::string wrong = read_packed_file(source_, packed);
  if (wrong.empty() && packed.way_back == kernels::mrp::WayBack::kNo) return copy(folder, file);
  const std::string name = jpeg_name(file.name, packed.ending);
  if (wrong.empty()) wrong = packer_.restore(source_, made_);
  const std::string path = joined(joined(plan_.from, folder.path), file.name);
  if (!wrong.empty()) return Error{Code::kInvalid, path + " is damaged: " + wrong};
  Converted done{.became = Became::kConverted, .bytes_read = source_.size(), .bytes_written = made_.size()};
  const std::string into = joined(plan_.into, folder.path), target = joined(into, name);
  MILLRACE_TRY(const bool fresh, place(made_, into, name, source.status()));
  done.was_there = !fresh;
  if (fresh && !plan_.delete_converted) return done;
  MILLRACE_TRY(SourceFile there, SourceFile::open(target));
  if (there.size() != made_.size()) return taken(target);
  MILLRACE_TRY_VOID(there.read(there_));
  if (there_ != made_) return taken(target);
  return done;
}

Result<Converted> Converter::copy(const TreeFolder& folder, const TreeFile& file) {
  const std::string into = joined(plan_.into, folder.path), target = joined(into, file.name);
  const std::string path = joined(joined(plan_.from, folder.path), file.name);
  MILLRACE_TRY(SourceFile source, SourceFile::open(path));
  MILLRACE_TRY(const bool fresh, place_copy(source, into, file.name));
  Converted done{
      .became = Became::kCopied, .was_there = !fresh, .bytes_read = source.size(), .bytes_written = source.size()};
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

// Whether the packed file on the disk becomes these bytes again.
bool Converter::becomes(const std::string& packed_path, const std::vector<std::uint8_t>& jpeg) {
  auto there = SourceFile::open(packed_path);
  return there && there->size() <= 4 * kMostJpeg && there->read(there_) && packer_.restore(there_, back_).empty() &&
         back_ == jpeg;
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
