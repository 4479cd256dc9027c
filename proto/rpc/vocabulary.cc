#include "proto/rpc/vocabulary.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <vector>

namespace millrace {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Without the package, which all of them share.
template <class Descriptor_>
std::string name_of(const Descriptor_& descriptor) {
  return descriptor.full_name().substr(descriptor.file()->package().size() + 1);
}

template <class Entries>
auto find(const Entries& entries, const std::string& name,
          const std::string& (Entries::value_type::*own_name)() const) {
  return std::find_if(entries.begin(), entries.end(), [&](const auto& entry) { return (entry.*own_name)() == name; });
}

const v1::Vocabulary::Fields* fields_of(const v1::Vocabulary& vocabulary, const std::string& message) {
  const auto found = find(vocabulary.messages(), message, &v1::Vocabulary::Fields::message);
  return found == vocabulary.messages().end() ? nullptr : &*found;
}

const v1::Vocabulary::Values* values_of(const v1::Vocabulary& vocabulary, const std::string& enumeration) {
  const auto found = find(vocabulary.enums(), enumeration, &v1::Vocabulary::Values::enumeration);
  return found == vocabulary.enums().end() ? nullptr : &*found;
}

template <class Entry, class Number>
bool has(const Entry* entry, Number number) {
  return entry != nullptr && std::count(entry->numbers().begin(), entry->numbers().end(), number) > 0;
}

bool knows_field(const v1::Vocabulary& vocabulary, const FieldDescriptor& field) {
  return has(fields_of(vocabulary, name_of(*field.containing_type())), static_cast<std::uint32_t>(field.number()));
}

bool knows_value(const v1::Vocabulary& vocabulary, const EnumDescriptor& enumeration, int value) {
  return has(values_of(vocabulary, name_of(enumeration)), value);
}

void add(const EnumDescriptor& enumeration, v1::Vocabulary& vocabulary) {
  if (values_of(vocabulary, name_of(enumeration)) != nullptr) return;
  v1::Vocabulary::Values& values = *vocabulary.add_enums();
  values.set_enumeration(name_of(enumeration));
  for (int i = 0; i < enumeration.value_count(); ++i) values.add_numbers(enumeration.value(i)->number());
}

void add(const Descriptor& message, v1::Vocabulary& vocabulary) {
  if (fields_of(vocabulary, name_of(message)) != nullptr) return;
  v1::Vocabulary::Fields& fields = *vocabulary.add_messages();
  fields.set_message(name_of(message));
  for (int i = 0; i < message.field_count(); ++i)
    fields.add_numbers(static_cast<std::uint32_t>(message.field(i)->number()));
  for (int i = 0; i < message.field_count(); ++i) {
    if (const Descriptor* inner = message.field(i)->message_type()) add(*inner, vocabulary);
    if (const EnumDescriptor* inner = message.field(i)->enum_type()) add(*inner, vocabulary);
  }
}

std::string spelled(const FieldDescriptor& field) {
  return name_of(*field.containing_type()) + "." + field.name();
}

std::optional<std::string> missing_value(const v1::Vocabulary& vocabulary, const Message& message,
                                         const FieldDescriptor& field) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  const int count = field.is_repeated() ? reflection.FieldSize(message, &field) : 1;
  for (int i = 0; i < count; ++i) {
    const int value = field.is_repeated() ? reflection.GetRepeatedEnumValue(message, &field, i)
                                          : reflection.GetEnumValue(message, &field);
    if (knows_value(vocabulary, *field.enum_type(), value)) continue;
    const google::protobuf::EnumValueDescriptor* named = field.enum_type()->FindValueByNumber(value);
    return "the value " + (named != nullptr ? named->name() : std::to_string(value)) + " of " + spelled(field);
  }
  return std::nullopt;
}

std::optional<std::string> missing_inside(const v1::Vocabulary& vocabulary, const Message& message,
                                          const FieldDescriptor& field) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  if (!field.is_repeated()) return first_missing(vocabulary, reflection.GetMessage(message, &field));
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    if (auto missing = first_missing(vocabulary, reflection.GetRepeatedMessage(message, &field, i))) return missing;
  }
  return std::nullopt;
}

}  // namespace

v1::Vocabulary own_vocabulary() {
  v1::Vocabulary vocabulary;
  add(*v1::OpenSessionRequest::descriptor(), vocabulary);
  add(*v1::ClientMessage::descriptor(), vocabulary);
  return vocabulary;
}

bool covers(const v1::Vocabulary& vocabulary, const v1::Vocabulary& part) {
  const auto all_of = [](const auto& mine, const auto* theirs) {
    return std::all_of(mine.numbers().begin(), mine.numbers().end(), [&](auto number) { return has(theirs, number); });
  };
  return std::all_of(part.messages().begin(), part.messages().end(),
                     [&](const auto& mine) { return all_of(mine, fields_of(vocabulary, mine.message())); }) &&
         std::all_of(part.enums().begin(), part.enums().end(),
                     [&](const auto& mine) { return all_of(mine, values_of(vocabulary, mine.enumeration())); });
}

std::optional<std::string> first_missing(const v1::Vocabulary& vocabulary, const Message& message) {
  std::vector<const FieldDescriptor*> set;
  message.GetReflection()->ListFields(message, &set);
  for (const FieldDescriptor* field : set) {
    if (!knows_field(vocabulary, *field)) return spelled(*field);
    std::optional<std::string> missing;
    if (field->enum_type() != nullptr) missing = missing_value(vocabulary, message, *field);
    if (field->message_type() != nullptr) missing = missing_inside(vocabulary, message, *field);
    if (missing) return missing;
  }
  return std::nullopt;
}

}  // namespace millrace
