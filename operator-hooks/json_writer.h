// JSON text written in the order of the calls: the same calls, the same bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace ashlar::hooks {

class JsonWriter {
 public:
  const std::string& text() const { return text_; }
  std::string Take() { return std::move(text_); }

  // A value of its own, or an item of the array being written.
  void Item(std::string_view text) { Comma(), Quote(text); }
  void Item(int64_t number) { Comma(), text_ += std::to_string(number); }
  void RawItem(std::string_view json) { Comma(), text_ += json; }
  template <class Body>
  void Object(Body&& body) {
    Comma(), Enclose('{', '}', body);
  }
  template <class Body>
  void Array(Body&& body) {
    Comma(), Enclose('[', ']', body);
  }

  // Members of the object being written. After Member comes the value, as an item.
  void Member(std::string_view key) { Key(key); }
  void Add(std::string_view key, std::string_view text) { Key(key), Quote(text); }
  void Add(std::string_view key, const char* text) { Add(key, std::string_view(text)); }
  template <class Number>
  requires std::is_integral_v<Number>
  void Add(std::string_view key, Number value) {
    Key(key);
    if constexpr (std::is_same_v<Number, bool>) {
      text_ += value ? "true" : "false";
    } else {
      text_ += std::to_string(value);
    }
  }
  // Leaves the member out when there is nothing to say.
  void AddIf(std::string_view key, std::string_view text) {
    if (!text.empty()) Add(key, text);
  }
  // Members written elsewhere, without the braces.
  void RawMembers(std::string_view members) { Comma(), text_ += members; }
  void Raw(std::string_view key, std::string_view json) {
    if (!json.empty()) Key(key), text_ += json;
  }
  template <class Body>
  void Object(std::string_view key, Body&& body) {
    Key(key), Enclose('{', '}', body);
  }
  template <class Body>
  void Array(std::string_view key, Body&& body) {
    Key(key), Enclose('[', ']', body);
  }

 private:
  void Comma() {
    if (!text_.empty() && text_.back() != '{' && text_.back() != '[' && text_.back() != ':')
      text_ += ',';
  }
  void Key(std::string_view key) { Comma(), Quote(key), text_ += ':'; }
  // Invalid UTF-8 is passed on: what is written here was read as valid.
  void Quote(std::string_view text);
  template <class Body>
  void Enclose(char open, char close, Body&& body) {
    text_ += open;
    body();
    text_ += close;
  }

  std::string text_;
};

}  // namespace ashlar::hooks
