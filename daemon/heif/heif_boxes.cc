#include "daemon/heif/heif_boxes.h"

#include <algorithm>
#include <string>
#include <utility>

#include "daemon/heif/file_boxes.h"

namespace millrace {
namespace {

constexpr std::uint64_t kMostDescription =
    256 << 10;                       // bytes of "meta" without the data in it; libraries look items up in turn
constexpr int kMostReferences = 32;  // to the picture, of a kind, that are followed
constexpr std::uint32_t kGrid = fourcc("grid");

Error cut_off(const char* what) {
  return {Code::kInvalid, std::string("cut off: the file ends before ") + what};
}

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

std::optional<std::uint32_t> part_of(ByteReader meta, std::uint32_t grid, std::uint32_t part) {
  const auto iref = find(meta, kFull, "iref");
  if (!iref) return std::nullopt;
  const unsigned id_bytes = version_of(*iref) == 0 ? 2 : 4;
  Boxes boxes(*iref, kFull);
  while (const std::optional<FileBox> box = boxes.next()) {
    if (box->type != fourcc("dimg") || number(box->data, 0, id_bytes) != std::uint64_t{grid}) continue;
    if (part >= box->data.big16(id_bytes).value_or(0)) return std::nullopt;
    const auto target = number(box->data, id_bytes + 2 + std::size_t{part} * id_bytes, id_bytes);
    if (target) return static_cast<std::uint32_t>(*target);
  }
  return std::nullopt;
}

// The items that one reference of the kind "dimg" names. View of its box.
class Named {
 public:
  Named(ByteReader box, unsigned id_bytes) : box_(box), id_bytes_(id_bytes) {}

  std::optional<std::uint64_t> from() const { return number(box_, 0, id_bytes_); }
  // That are there: it may say more.
  std::uint32_t count() const {
    const std::size_t begin = id_bytes_ + 2, there = box_.size() < begin ? 0 : (box_.size() - begin) / id_bytes_;
    return static_cast<std::uint32_t>(std::min<std::size_t>(box_.big16(id_bytes_).value_or(0), there));
  }
  std::uint64_t operator[](std::uint32_t i) const {
    return number(box_, id_bytes_ + 2 + std::size_t{i} * id_bytes_, id_bytes_).value_or(0);
  }
  bool ascends() const {
    for (std::uint32_t i = 1; i < count(); ++i)
      if ((*this)[i - 1] >= (*this)[i]) return false;
    return true;
  }
  // REQUIRES: ascends().
  bool has(std::uint64_t item) const {
    std::uint32_t begin = 0, end = count();
    while (begin < end) {
      const std::uint32_t middle = begin + (end - begin) / 2;
      if ((*this)[middle] == item) return true;
      if ((*this)[middle] < item)
        begin = middle + 1;
      else
        end = middle;
    }
    return false;
  }

 private:
  ByteReader box_;
  unsigned id_bytes_;
};

// See heif_parts_ascend(). `parts`: how many the grid has.
bool parts_ascend(ByteReader meta, std::uint32_t grid, std::uint32_t parts) {
  const auto iref = find(meta, kFull, "iref");
  if (!iref) return false;
  const unsigned id_bytes = version_of(*iref) == 0 ? 2 : 4;
  const auto each = [&](auto see) {
    Boxes boxes(*iref, kFull);
    while (const std::optional<FileBox> box = boxes.next()) {
      if (box->type == fourcc("dimg") && !see(Named(box->data, id_bytes))) return false;
    }
    return true;
  };
  std::optional<Named> named;
  const bool is_once = each([&](const Named& one) {
    if (one.from() != std::uint64_t{grid}) return true;
    return !std::exchange(named, one).has_value();
  });
  if (!is_once || !named || named->count() != parts || !named->ascends()) return false;
  return each([&](const Named& other) {
    if (other.from() == std::uint64_t{grid}) return true;
    for (std::uint32_t i = 0; i < other.count(); ++i)
      if (named->has(other[i])) return false;
    return true;
  });
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
  if (const auto hvcc = properties.of("hvcC")) return (hvcc->u8(17).value_or(0) & 7U) != 0;
  if (const auto pixi = properties.of("pixi")) return pixi->u8(kFull + 1).value_or(8) > 8;
  return false;
}

bool is_alpha(ByteReader meta, std::uint32_t item) {
  const auto auxc = Properties(meta, item).of("auxC");
  if (!auxc) return false;
  return auxc->holds(kFull, "urn:mpeg:mpegB:cicp:systems:auxiliary:alpha") ||
         auxc->holds(kFull, "urn:mpeg:hevc:2015:auxid:1");
}

// How pixels go where they are shown: the matrices of EXIF's orientations, by columns and rows.
using Turn = std::array<int, 4>;
constexpr std::array<Turn, 9> kTurns{{{1, 0, 0, 1},
                                      {1, 0, 0, 1},
                                      {-1, 0, 0, 1},
                                      {-1, 0, 0, -1},
                                      {1, 0, 0, -1},
                                      {0, 1, 1, 0},
                                      {0, -1, 1, 0},
                                      {0, -1, -1, 0},
                                      {0, 1, -1, 0}}};

std::uint8_t then(std::uint8_t first, std::uint8_t second) {
  const Turn &a = kTurns[first], &b = kTurns[second];
  const Turn both{b[0] * a[0] + b[1] * a[2], b[0] * a[1] + b[1] * a[3], b[2] * a[0] + b[3] * a[2],
                  b[2] * a[1] + b[3] * a[3]};
  return static_cast<std::uint8_t>(std::find(kTurns.begin() + 1, kTurns.end(), both) - kTurns.begin());
}

// 23008-12, 6.5.9; 14496-12, 12.1.4.1: the size, and how far its middle is from the picture's, as fractions.
std::optional<Box> crop_of(const ByteReader& clap, Size size) {
  std::array<std::int64_t, 8> values{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto value = clap.big32(4 * i);
    if (!value) return std::nullopt;
    values[i] = i == 4 || i == 6 ? static_cast<std::int32_t>(*value) : std::int64_t{*value};
  }
  const auto begin = [&](std::int64_t whole, std::size_t extent, std::size_t offset) -> std::optional<std::int64_t> {
    const std::int64_t by = values[offset + 1];
    if (values[extent + 1] != 1 || (by != 1 && by != 2)) return std::nullopt;
    const std::int64_t twice = values[offset] * (2 / by) + whole - values[extent];
    const std::int64_t first = (twice + 1) >> 1;
    if (values[extent] < 1 || first < 0 || first + values[extent] > whole) return std::nullopt;
    return first;
  };
  const auto left = begin(size.width, 0, 4), top = begin(size.height, 2, 6);
  if (!left || !top || size.width > 0x7FFFFFFF || size.height > 0x7FFFFFFF) return std::nullopt;
  return Box{static_cast<std::int32_t>(*left), static_cast<std::int32_t>(*top), static_cast<std::int32_t>(values[0]),
             static_cast<std::int32_t>(values[2])};
}

void transform(const FileBox& box, HeifItem& item) {
  const std::uint32_t first = box.data.u8(0).value_or(0);
  const bool is_on_its_side = item.turned >= 5;
  const bool odd_columns = (item.crop ? item.crop->width & 1 : item.size.width & 1U) != 0;
  const bool odd_rows = (item.crop ? item.crop->height & 1 : item.size.height & 1U) != 0;
  const bool odd_width = is_on_its_side ? odd_rows : odd_columns, odd_height = is_on_its_side ? odd_columns : odd_rows;
  if (box.type == fourcc("irot")) {
    const std::uint32_t quarters = first & 3U;
    for (std::uint32_t i = 0; i < quarters; ++i) item.turned = then(item.turned, 8);
    item.is_smoothed_420 |=
        (quarters == 1 && odd_width) || (quarters == 2 && (odd_width || odd_height)) || (quarters == 3 && odd_height);
    item.is_smoothed_422 |= quarters % 2 == 1 || (quarters == 2 && odd_height);
  } else if (box.type == fourcc("imir")) {
    const bool is_upside_down = (first & 1U) == 0;
    item.turned = then(item.turned, is_upside_down ? 4 : 2);
    item.is_smoothed_420 |= odd_width || odd_height;
    item.is_smoothed_422 |= !is_upside_down && odd_width;
  } else if (box.type == fourcc("clap")) {
    const bool is_first = !item.crop && item.turned == 1;
    if (is_first) item.crop = crop_of(box.data, item.size);
    item.has_other_crop = !is_first || !item.crop;
  }
}

std::optional<HeifItem::Colours> colours_by(const Properties& properties) {
  for (std::size_t i = 0; i < properties.count(); ++i) {
    const ByteReader& colr = properties[i].data;
    if (properties[i].type != fourcc("colr") || !colr.holds(0, "nclx")) continue;
    const auto matrix = colr.big16(8);
    const auto range = colr.u8(10);
    if (matrix && range) return HeifItem::Colours{*matrix, (*range & 0x80U) != 0};
  }
  return std::nullopt;
}

struct Meta {
  ByteReader data{ByteView{}};
  std::uint32_t primary = 0;
  std::uint64_t box_bytes = 0;
  bool is_open = false;
};

Result<Meta> read_meta(ByteReader file) {
  Meta found;
  std::optional<ByteReader> meta;
  bool has_track = false;
  Boxes boxes(file);
  while (const std::optional<FileBox> box = boxes.next()) {
    has_track |= box->type == fourcc("moov");
    if (box->type == fourcc("moov")) found.box_bytes += box->data.size();
    if (box->type != fourcc("meta") || meta) continue;
    if (!box->is_whole) return cut_off("the end of the boxes that say what is in it");
    meta = box->data;
    found.is_open = box->is_open;
  }
  const Error no_picture{Code::kUnsupported, "an animation without a picture beside its track"};
  if (!meta && has_track) return no_picture;
  if (!meta) return cut_off("the boxes that say what is in it");
  const auto idat = find(*meta, kFull, "idat");
  const std::uint64_t described = meta->size() - (idat ? idat->size() : 0);
  found.box_bytes += described;
  if (described > kMostDescription)
    return Error{Code::kInvalid, "its boxes speak of more than a picture can have: " + std::to_string(described) +
                                     " bytes of them, where " + std::to_string(kMostDescription) + " are the limit"};
  const auto pitm = find(*meta, kFull, "pitm");
  const auto primary = pitm ? number(*pitm, kFull, version_of(*pitm) == 0 ? 2 : 4) : std::nullopt;
  if (!primary && has_track) return no_picture;
  if (!primary) return Error{Code::kInvalid, "its boxes do not say which picture is meant"};
  found.data = *meta;
  found.primary = static_cast<std::uint32_t>(*primary);
  return found;
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

// 23008-12, 6.6.2.3.2.
std::optional<HeifGrid> read_heif_grid(ByteView data_untrusted) {
  const ByteReader data(data_untrusted);
  const auto flags = data.u8(1), rows = data.u8(2), columns = data.u8(3);
  if (!columns) return std::nullopt;
  const bool is_large = (*flags & 1U) != 0;
  const auto width = is_large ? data.big32(4) : data.big16(4), height = is_large ? data.big32(8) : data.big16(6);
  if (!height) return std::nullopt;
  return HeifGrid{*columns + 1U, *rows + 1U, {*width, *height}};
}

Result<HeifItems> HeifItems::open(ByteReader bytes_untrusted) {
  MILLRACE_TRY(const Meta meta, read_meta(bytes_untrusted));
  return HeifItems(bytes_untrusted, meta.data, meta.primary);
}

HeifItem HeifItems::item(std::uint32_t id) const {
  const Properties properties(meta_, id);
  HeifItem item{.type = item_type(meta_, id),
                .size = size_by(properties).value_or(Size{}),
                .data = data_of(file_, meta_, id),
                .colours = colours_by(properties)};
  if (const auto hvcc = properties.of("hvcC")) item.configuration = hvcc->bytes();
  for (std::size_t i = 0; i < properties.count(); ++i) transform(properties[i], item);
  return item;
}

std::optional<std::uint32_t> HeifItems::part(std::uint32_t grid, std::uint32_t number) const {
  return part_of(meta_, grid, number);
}

bool HeifItems::is_premultiplied() const {
  // From the picture to the alpha, so it is the picture that refers.
  const auto iref = find(meta_, kFull, "iref");
  if (!iref) return false;
  Boxes boxes(*iref, kFull);
  while (const std::optional<FileBox> box = boxes.next()) {
    if (box->type == fourcc("prem") && number(box->data, 0, version_of(*iref) == 0 ? 2 : 4) == std::uint64_t{primary_})
      return true;
  }
  return false;
}

bool heif_parts_ascend(ByteReader bytes_untrusted) {
  const Result<Meta> found = read_meta(bytes_untrusted);
  if (!found) return true;
  const auto ascend = [&](std::uint32_t item) {
    if (item_type(found->data, item) != kGrid) return true;
    const auto grid = read_heif_grid(data_of(bytes_untrusted, found->data, item));
    return grid && parts_ascend(found->data, item, grid->columns * grid->rows);
  };
  bool all = ascend(found->primary);
  references_to(found->data, "auxl", found->primary, [&](std::uint32_t from) {
    if (!is_alpha(found->data, from)) return false;
    all = all && ascend(from);
    return true;
  });
  return all;
}

Result<HeifPicture> read_heif_picture(ByteReader bytes_untrusted, HeifMetadata metadata) {
  MILLRACE_TRY(const Meta found, read_meta(bytes_untrusted));
  const ByteReader& meta = found.data;
  const std::uint32_t item = found.primary;
  HeifPicture picture{.box_bytes = found.box_bytes, .description_is_open = found.is_open};
  const Properties properties(meta, item);
  const std::optional<Size> size = size_by(properties);
  if (!size) return Error{Code::kInvalid, "its boxes do not say how large the picture is"};
  picture.size = picture.part = *size;
  picture.type = item_type(meta, item);
  picture.turned = turned_by(properties);
  picture.deep = is_deep(properties);
  picture.data = data_of(bytes_untrusted, meta, item);
  if (picture.type == kGrid) {
    const auto grid = read_heif_grid(picture.data);
    picture.parts = grid ? grid->columns * grid->rows : 0;
    if (const auto part = part_of(meta, item, 0)) {
      const Properties of_part(meta, *part);
      picture.part = size_by(of_part).value_or(*size);
      picture.deep = is_deep(of_part);
    }
  }
  references_to(meta, "auxl", item, [&](std::uint32_t from) {
    if (!is_alpha(meta, from)) return false;
    picture.alpha = true;
    picture.alpha_data = data_of(bytes_untrusted, meta, from);
    return true;
  });
  if (metadata == HeifMetadata::kRead) read_metadata(bytes_untrusted, meta, item, picture);
  return picture;
}

}  // namespace millrace
