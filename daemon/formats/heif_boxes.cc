#include "daemon/formats/heif_boxes.h"

#include <algorithm>
#include <bitset>

namespace millrace {
namespace {

constexpr std::uint64_t kMostDescription =
    256 << 10;                       // bytes of "meta" without the data in it; libraries look items up in turn
constexpr int kMostReferences = 32;  // to the picture, of a kind, that are followed
constexpr std::uint32_t kGrid = fourcc("grid");

struct FileBox {
  std::uint32_t type = 0;
  ByteReader data{ByteView{}};
  bool is_whole = true;
};

// The boxes that follow each other in `data`. ISO/IEC 14496-12, 4.2.
class Boxes {
 public:
  explicit Boxes(ByteReader data, std::size_t at = 0) : data_(data), at_(at) {}

  std::optional<FileBox> next() {
    const auto size = data_.big32(at_), type = data_.big32(at_ + 4);
    if (!size || !type) return std::nullopt;
    std::uint64_t bytes = *size, header = 8;
    if (bytes == 1) {
      const auto upper = data_.big32(at_ + 8), lower = data_.big32(at_ + 12);
      if (!upper || !lower) return std::nullopt;
      bytes = std::uint64_t{*upper} << 32U | *lower;
      header = 16;
    } else if (bytes == 0) {
      bytes = data_.size() - at_;
    }
    if (bytes < header) return std::nullopt;
    const std::size_t there = data_.size() - at_;
    const auto whole = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, there));
    FileBox box{*type, ByteReader(data_.part(at_ + header, whole - std::min<std::size_t>(header, whole))),
                bytes <= there};
    at_ = bytes > there ? data_.size() : at_ + static_cast<std::size_t>(bytes);
    return box;
  }

 private:
  ByteReader data_;
  std::size_t at_;
};

std::optional<ByteReader> find(ByteReader data, std::size_t at, std::string_view name) {
  Boxes boxes(data, at);
  while (const std::optional<FileBox> box = boxes.next()) {
    if (box->type == fourcc(name)) return box->data;
  }
  return std::nullopt;
}

// Version and flags of a "full box" stand before what it holds.
constexpr std::size_t kFull = 4;

std::uint32_t version_of(const ByteReader& box) {
  return box.u8(0).value_or(0);
}

// A number of as many bytes as some field of the file says, 0 to 8.
std::optional<std::uint64_t> number(const ByteReader& data, std::size_t at, unsigned bytes) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < bytes; ++i) {
    const auto byte = data.u8(at + i);
    if (!byte) return std::nullopt;
    value = value << 8U | *byte;
  }
  return value;
}

// The properties of an item, in its order. 23008-12, 9.3.
class Properties {
 public:
  Properties(ByteReader meta, std::uint32_t item) {
    const auto iprp = find(meta, kFull, "iprp");
    const auto ipco = iprp ? find(*iprp, 0, "ipco") : std::nullopt;
    if (!ipco) return;
    Boxes boxes(*iprp);
    while (const std::optional<FileBox> box = boxes.next()) {
      if (box->type == fourcc("ipma") && read_numbers(box->data, item)) break;
    }
    Boxes all(*ipco);
    for (std::uint32_t number = 1; const std::optional<FileBox> box = all.next(); ++number) {
      if (number >= wanted_.size()) break;
      if (!wanted_[number]) continue;
      for (std::size_t i = 0; i < count_; ++i) {
        if (numbers_[i] == number) boxes_[i] = *box;
      }
    }
  }

  // The first.
  std::optional<ByteReader> of(std::string_view name) const {
    for (std::size_t i = 0; i < count_; ++i) {
      if (boxes_[i].type == fourcc(name)) return boxes_[i].data;
    }
    return std::nullopt;
  }

 private:
  bool read_numbers(const ByteReader& ipma, std::uint32_t item) {
    const unsigned id_bytes = version_of(ipma) < 1 ? 2 : 4;
    const unsigned number_bytes = (ipma.u8(3).value_or(0) & 1U) != 0 ? 2 : 1;
    const std::uint32_t entries = ipma.big32(kFull).value_or(0);
    std::size_t at = kFull + 4;
    for (std::uint32_t i = 0; i < entries; ++i) {
      const auto id = number(ipma, at, id_bytes);
      const auto count = ipma.u8(at + id_bytes);
      if (!id || !count) return false;
      at += id_bytes + 1;
      if (*id == item) {
        for (unsigned j = 0; j < *count; ++j) {
          const auto one = number(ipma, at + std::size_t{j} * number_bytes, number_bytes);
          if (!one) break;
          numbers_[count_] = static_cast<std::uint32_t>(*one) & (number_bytes == 2 ? 0x7FFFU : 0x7FU);
          wanted_.set(numbers_[count_++]);
        }
        return true;
      }
      at += std::size_t{*count} * number_bytes;
    }
    return false;
  }

  std::array<std::uint32_t, 256> numbers_{};
  std::array<FileBox, 256> boxes_{};
  std::size_t count_ = 0;
  std::bitset<0x8000> wanted_;
};

// What "infe" says of an item: 0 where there is none. Of "mime" items `mime` gets the rest.
std::uint32_t item_type(ByteReader meta, std::uint32_t item, ByteReader* mime = nullptr) {
  const auto iinf = find(meta, kFull, "iinf");
  if (!iinf) return 0;
  Boxes boxes(*iinf, kFull + (version_of(*iinf) == 0 ? 2 : 4));
  while (const std::optional<FileBox> box = boxes.next()) {
    const std::uint32_t version = version_of(box->data);
    if (box->type != fourcc("infe") || version < 2) continue;
    const unsigned id_bytes = version == 2 ? 2 : 4;
    if (number(box->data, kFull, id_bytes) != std::uint64_t{item}) continue;
    const std::size_t type_at = kFull + id_bytes + 2;
    if (mime != nullptr) *mime = ByteReader(box->data.part(type_at + 4, box->data.size()));
    return box->data.big32(type_at).value_or(0);
  }
  return 0;
}

// Calls `see(from)` for the first items that refer to `to` in this way, until it says true.
template <class See>
void references_to(ByteReader meta, std::string_view kind, std::uint32_t to, See see) {
  const auto iref = find(meta, kFull, "iref");
  if (!iref) return;
  const unsigned id_bytes = version_of(*iref) == 0 ? 2 : 4;
  int left = kMostReferences;
  Boxes boxes(*iref, kFull);
  while (const std::optional<FileBox> box = boxes.next()) {
    if (box->type != fourcc(kind)) continue;
    const auto from = number(box->data, 0, id_bytes);
    const std::uint32_t count = box->data.big16(id_bytes).value_or(0);
    for (std::uint32_t i = 0; from && i < count; ++i) {
      const auto target = number(box->data, id_bytes + 2 + std::size_t{i} * id_bytes, id_bytes);
      if (!target) break;
      if (*target != to) continue;
      if (left-- == 0 || see(static_cast<std::uint32_t>(*from))) return;
    }
  }
}

std::optional<std::uint32_t> first_part(ByteReader meta, std::uint32_t grid) {
  const auto iref = find(meta, kFull, "iref");
  if (!iref) return std::nullopt;
  const unsigned id_bytes = version_of(*iref) == 0 ? 2 : 4;
  Boxes boxes(*iref, kFull);
  while (const std::optional<FileBox> box = boxes.next()) {
    if (box->type != fourcc("dimg") || number(box->data, 0, id_bytes) != std::uint64_t{grid}) continue;
    const auto target = number(box->data, id_bytes + 2, id_bytes);
    if (target) return static_cast<std::uint32_t>(*target);
  }
  return std::nullopt;
}

// An item's data, if it lies in one piece, in the file or in "idat"; else nothing. 14496-12, 8.11.3.
ByteView data_of(ByteReader file, ByteReader meta, std::uint32_t item) {
  const auto iloc = find(meta, kFull, "iloc");
  if (!iloc) return {};
  const std::uint32_t version = version_of(*iloc);
  const std::uint32_t sizes = iloc->big16(kFull).value_or(0);
  const unsigned offset_bytes = sizes >> 12U, length_bytes = sizes >> 8U & 15U, base_bytes = sizes >> 4U & 15U;
  const unsigned index_bytes = version == 0 ? 0 : sizes & 15U;
  if (std::max({offset_bytes, length_bytes, base_bytes, index_bytes}) > 8 || version > 2) return {};
  const unsigned id_bytes = version < 2 ? 2 : 4;
  const std::uint64_t count = number(*iloc, kFull + 2, id_bytes).value_or(0);
  std::size_t at = kFull + 2 + id_bytes;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto id = number(*iloc, at, id_bytes);
    at += id_bytes;
    const std::uint32_t method = version == 0 ? 0 : iloc->big16(at).value_or(0) & 15U;
    at += (version == 0 ? 0 : 2) + 2;
    const auto base = number(*iloc, at, base_bytes);
    const auto extents = iloc->big16(at + base_bytes);
    if (!id || !base || !extents) return {};
    at += base_bytes + 2;
    if (*id != item) {
      at += std::size_t{*extents} * (index_bytes + offset_bytes + length_bytes);
      continue;
    }
    const auto offset = number(*iloc, at + index_bytes, offset_bytes);
    const auto length = number(*iloc, at + index_bytes + offset_bytes, length_bytes);
    if (!offset || !length || *extents != 1) return {};
    const auto idat = method == 1 ? find(meta, kFull, "idat") : std::nullopt;
    if (method > 1 || (method == 1 && !idat)) return {};
    const ByteReader from = method == 1 ? *idat : file;
    if (*base > from.size() || *offset > from.size()) return {};
    return from.part(static_cast<std::size_t>(*base + *offset),
                     static_cast<std::size_t>(std::min<std::uint64_t>(*length, from.size())));
  }
  return {};
}

std::uint8_t turned_by(const Properties& properties) {
  const auto irot = properties.of("irot"), imir = properties.of("imir");
  const std::uint32_t angle = irot ? irot->u8(0).value_or(0) & 3U : 0;  // quarters, against the clock
  constexpr std::uint8_t kTurned[4] = {1, 8, 3, 6}, kUpsideDown[4] = {4, 5, 2, 7}, kMirrored[4] = {2, 7, 4, 5};
  if (!imir) return kTurned[angle];
  return (imir->u8(0).value_or(0) & 1U) == 0 ? kUpsideDown[angle] : kMirrored[angle];
}

std::optional<Size> size_by(const Properties& properties) {
  const auto ispe = properties.of("ispe");
  if (!ispe) return std::nullopt;
  const auto width = ispe->big32(kFull), height = ispe->big32(kFull + 4);
  if (!width || !height) return std::nullopt;
  return Size{*width, *height};
}

bool is_deep(const Properties& properties) {
  if (const auto av1c = properties.of("av1C")) return (av1c->u8(2).value_or(0) & 0x40U) != 0;
  if (const auto pixi = properties.of("pixi")) return pixi->u8(kFull + 1).value_or(8) > 8;
  return false;
}

bool is_alpha(ByteReader meta, std::uint32_t item) {
  const auto auxc = Properties(meta, item).of("auxC");
  if (!auxc) return false;
  return auxc->holds(kFull, "urn:mpeg:mpegB:cicp:systems:auxiliary:alpha") ||
         auxc->holds(kFull, "urn:mpeg:hevc:2015:auxid:1");
}

// 23008-12, 6.6.2.3.2.
std::uint32_t parts_of(ByteView grid_untrusted) {
  const ByteReader grid(grid_untrusted);
  const auto rows = grid.u8(2), columns = grid.u8(3);
  return rows && columns ? (*rows + 1U) * (*columns + 1U) : 0;
}

void read_metadata(ByteReader file, ByteReader meta, std::uint32_t primary, HeifPicture& picture) {
  references_to(meta, "cdsc", primary, [&](std::uint32_t from) {
    ByteReader mime{ByteView{}};
    const std::uint32_t type = item_type(meta, from, &mime);
    if (type == fourcc("Exif")) {
      const ByteView data = data_of(file, meta, from);
      const std::uint64_t begin = 4 + std::uint64_t{ByteReader(data).big32(0).value_or(0)};
      picture.exif = begin < data.size() ? data.subspan(static_cast<std::size_t>(begin)) : ByteView{};
    } else if (type == fourcc("mime")) {
      using namespace std::string_view_literals;
      const std::string_view rest = ByteReader::text(mime.bytes());  // the item's name, what it is
      const std::size_t name = rest.find('\0');
      if (name != std::string_view::npos && rest.substr(name + 1).starts_with("application/rdf+xml\0"sv))
        picture.xmp = data_of(file, meta, from);
    }
    return false;
  });
}

}  // namespace

bool has_heif_brand(const ByteReader& bytes_untrusted, std::initializer_list<std::string_view> brands) {
  if (!bytes_untrusted.holds(4, "ftyp")) return false;
  const auto is_ours = [&](std::size_t at) {
    return std::any_of(brands.begin(), brands.end(),
                       [&](std::string_view brand) { return bytes_untrusted.holds(at, brand); });
  };
  if (is_ours(8)) return true;
  if (!bytes_untrusted.holds(8, "mif1") && !bytes_untrusted.holds(8, "msf1")) return false;
  const std::size_t end = std::min<std::size_t>(bytes_untrusted.big32(0).value_or(0), 256);
  for (std::size_t at = 16; at + 4 <= end; at += 4) {
    if (is_ours(at)) return true;
  }
  return false;
}

Result<HeifPicture> read_heif_picture(ByteReader bytes_untrusted, Metadata metadata) {
  HeifPicture picture;
  std::optional<ByteReader> meta;
  Boxes boxes(bytes_untrusted);
  while (const std::optional<FileBox> box = boxes.next()) {
    if (box->type == fourcc("moov")) picture.box_bytes += box->data.size();
    if (box->type != fourcc("meta") || meta) continue;
    if (!box->is_whole) return cut_off("the end of the boxes that say what is in it");
    meta = box->data;
  }
  if (!meta) return cut_off("the boxes that say what is in it");
  const auto idat = find(*meta, kFull, "idat");
  const std::uint64_t described = meta->size() - (idat ? idat->size() : 0);
  picture.box_bytes += described;
  if (described > kMostDescription)
    return Error{Code::kInvalid, "its boxes speak of more than a picture can have: " + std::to_string(described) +
                                     " bytes of them, where " + std::to_string(kMostDescription) + " are the limit"};
  const auto pitm = find(*meta, kFull, "pitm");
  const auto primary = pitm ? number(*pitm, kFull, version_of(*pitm) == 0 ? 2 : 4) : std::nullopt;
  if (!primary) return Error{Code::kInvalid, "its boxes do not say which picture is meant"};
  const auto item = static_cast<std::uint32_t>(*primary);
  const Properties properties(*meta, item);
  const std::optional<Size> size = size_by(properties);
  if (!size) return Error{Code::kInvalid, "its boxes do not say how large the picture is"};
  picture.size = picture.part = *size;
  picture.type = item_type(*meta, item);
  picture.turned = turned_by(properties);
  picture.deep = is_deep(properties);
  picture.data = data_of(bytes_untrusted, *meta, item);
  if (picture.type == kGrid) {
    picture.parts = parts_of(picture.data);
    if (const auto part = first_part(*meta, item)) {
      const Properties of_part(*meta, *part);
      picture.part = size_by(of_part).value_or(*size);
      picture.deep = is_deep(of_part);
    }
  }
  references_to(*meta, "auxl", item, [&](std::uint32_t from) {
    if (!is_alpha(*meta, from)) return false;
    picture.alpha = true;
    picture.alpha_data = data_of(bytes_untrusted, *meta, from);
    return true;
  });
  if (metadata == Metadata::kRead) read_metadata(bytes_untrusted, *meta, item, picture);
  return picture;
}

}  // namespace millrace
