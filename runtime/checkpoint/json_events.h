// Strict reading of JSON in model files, whose headers may have 100 MB: no tree is built, memory
// goes only into what a known shape holds.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "checkpoint/layout.h"

namespace ashlar {

// JSON text holds no zero byte; nlohmann takes one for the end of the text.
inline std::optional<Problem> ZeroByte(std::string_view text, const std::string& place,
                                       size_t offset) {
  size_t zero = text.find('\0');
  if (zero == std::string_view::npos) return std::nullopt;
  return Problem{fmt::format("{} byte {}", place, offset + zero), "a zero byte", "JSON in UTF-8",
                 std::string(kDamaged)};
}

// Reads one known JSON shape event by event; each event is refused unless the shape overrides it.
class JsonEvents : public nlohmann::json_sax<Json> {
 public:
  explicit JsonEvents(std::string place) : place_(std::move(place)) {}

  bool null() override { return Unexpected("null"); }
  bool boolean(bool) override { return Unexpected("a boolean"); }
  bool number_integer(number_integer_t value) override {
    return Unexpected(fmt::format("the number {}", value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return Unexpected(fmt::format("the number {}", value));
  }
  bool number_float(number_float_t, const string_t& text) override {
    return Unexpected("the number " + Shown(text));
  }
  bool string(string_t& value) override {
    return Unexpected(fmt::format("the string \"{}\"", Shown(value)));
  }
  bool binary(binary_t&) override { return Unexpected("binary data"); }
  bool start_object(std::size_t) override { return Unexpected("an object"); }
  bool key(string_t&) override { return Unexpected("a key"); }
  bool end_object() override { return Unexpected("the end of an object"); }
  bool start_array(std::size_t) override { return Unexpected("an array"); }
  bool end_array() override { return Unexpected("the end of an array"); }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    std::string_view what = error.what();
    size_t cause = what.find(": ", what.find("column"));
    if (cause != std::string_view::npos) what.remove_prefix(cause + 2);
    return Refuse(fmt::format("byte {}: {}", position, Shown(what)), "JSON in UTF-8");
  }

  const Problem& problem() const { return problem_; }

 protected:
  // What stands where, for messages: "tensor model.norm.weight".
  virtual std::string Where() const = 0;
  virtual std::string Allowed() const = 0;

  bool Unexpected(std::string found) { return Refuse(std::move(found), Allowed()); }
  bool Refuse(std::string found, std::string allowed) {
    std::string where = Where();
    problem_ = {where.empty() ? place_ : place_ + " " + where, std::move(found), std::move(allowed),
                std::string(kDamaged)};
    return false;
  }

 private:
  std::string place_;
  Problem problem_;
};

}  // namespace ashlar
